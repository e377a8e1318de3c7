-- Adds a profile and returns it; an administrator gets one record per module with every flag.
-- `p_actor`: see begin_write; an administrator profile is refused to whoever has a limit.
create or replace function insert_perfil(p_actor jsonb, p_nombre text, p_administrador boolean)
returns setof perfil
language plpgsql
as $$
declare
  v_perfil perfil;
begin
  -- No module goes, or gets another name, meanwhile: see delete_modulo.
  perform pg_advisory_xact_lock_shared(7305511406);
  if (begin_write(p_actor, '{}')).limite is not null and p_administrador then
    perform refuse();
  end if;

  insert into perfil ("strNombrePerfil", "bitAdministrador") values (p_nombre, p_administrador)
  returning * into v_perfil;
  if p_administrador then
    perform grant_all_modulos(v_perfil.id);
  end if;
  return next v_perfil;
end
$$;
