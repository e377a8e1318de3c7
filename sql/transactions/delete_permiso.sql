-- Removes one permission record. An unknown id changes nothing.
--
-- Takes the id of the record. Returns {}.
create or replace function delete_permiso(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_perfiles integer[];
begin
  v_perfiles := begin_write_permiso(p_id, null, p_actor);
  delete from permisos_perfil where id = p_id and "idPerfil" = any(v_perfiles);
  return '{}';
end
$$;
