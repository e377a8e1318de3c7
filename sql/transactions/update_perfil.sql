-- Renames a profile and, when the administrator flag changes, replaces its permission records:
-- all modules with every flag for a new administrator, none for one that no longer is.
-- Returns the updated profile, or no row when there is none with that id.
-- `p_actor`: see begin_write; a change of the flag is refused to whoever has a limit.
create or replace function update_perfil(
  p_actor jsonb, p_id integer, p_nombre text, p_administrador boolean
) returns setof perfil
language plpgsql
as $$
declare
  v_limit jsonb := begin_write(p_actor, array[p_id]);
  v_administrador boolean;
begin
  select "bitAdministrador" into v_administrador from perfil where id = p_id;
  if not found then
    return;
  end if;

  if v_administrador <> p_administrador then
    if v_limit is not null then
      perform refuse();
    end if;
    delete from permisos_perfil where "idPerfil" = p_id;
    if p_administrador then
      perform grant_all_modulos(p_id);
    end if;
  end if;

  return query
    update perfil set "strNombrePerfil" = p_nombre, "bitAdministrador" = p_administrador
    where id = p_id
    returning *;
end
$$;
