-- Removes a profile with its permission records. An unknown id changes nothing.
--
-- Returns {}. Raises a foreign-key violation when users have the profile.
-- Refused: a profile that holds more than the caller's.
create or replace function delete_perfil(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_write record;
begin
  v_write := begin_write(array[p_id], p_actor);
  perform refuse_beyond(v_write.perfiles, v_write.limite);

  if p_id = any(v_write.perfiles) then
    delete from perfil where id = p_id;
  end if;
  return '{}';
end
$$;
