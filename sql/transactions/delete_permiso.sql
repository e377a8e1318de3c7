-- Removes one permission record. An unknown id changes nothing. Returns {}. Raises what
-- begin_write_permiso raises.
create or replace function delete_permiso(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_perfiles integer[] := begin_write_permiso(p_id, null, p_actor);
begin
  delete from permisos_perfil where id = p_id and "idPerfil" = any(v_perfiles);
  return '{}';
end
$$;
