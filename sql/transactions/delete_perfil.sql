-- Removes a profile and all of its permission records. An unknown id changes nothing.
--
-- Takes the id of the profile. Returns {}.
--
-- Raises LL403 if the profile holds more than the caller's profile, and a foreign-key violation if
-- users have the profile.
create or replace function delete_perfil(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_write record;
begin
  v_write := begin_write(array[p_id], p_actor);
  perform refuse_beyond(v_write.perfiles, v_write.limite);

  if p_id = any(v_write.perfiles) then
    -- The records go first. So their rows in the audit have the name of the profile, even if
    -- delete_auditoria has removed the rows that name it.
    delete from permisos_perfil where "idPerfil" = p_id;
    delete from perfil where id = p_id;
  end if;
  return '{}';
end
$$;
