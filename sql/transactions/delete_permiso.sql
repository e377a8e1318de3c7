-- Removes one permission record; without effect when there is none with that id.
-- `p_actor`: as in replace_permisos.
create or replace function delete_permiso(p_actor jsonb, p_id integer) returns void
language plpgsql
as $$
declare
  v_perfiles integer[] := begin_write_permiso(p_actor, p_id, null);
begin
  delete from permisos_perfil where id = p_id and "idPerfil" = any(v_perfiles);
end
$$;
