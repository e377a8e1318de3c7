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
  v_perfiles integer[];
  v_limit jsonb;
  v_perfil perfil;
begin
  -- No module goes, or gets another name, meanwhile: see delete_modulo.
  perform pg_advisory_xact_lock_shared(7305511406);
  select * into v_perfiles, v_limit from begin_write(p_actor, array[p_id]);
  select * into v_perfil from perfil where id = any(v_perfiles);

  if v_perfil."bitAdministrador" <> p_administrador then
    if v_limit is not null then
      perform refuse();
    end if;
    delete from permisos_perfil where "idPerfil" = v_perfil.id;
    if p_administrador then
      perform grant_all_modulos(v_perfil.id);
    end if;
  end if;

  return query
    update perfil set "strNombrePerfil" = p_nombre, "bitAdministrador" = p_administrador
    where id = v_perfil.id
    returning *;
end
$$;
