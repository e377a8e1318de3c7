-- Ends all sessions of the caller, so that none of the tokens issued so far is valid any more.
-- Returns {}. Raises what begin_write raises.
--
-- begin_write locks the caller's row only with `for share`. Two logouts that both held this lock
-- would deadlock at the update. So this function first locks the row with `for no key update`.
create or replace function end_sesiones(p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_id integer := (p_actor ->> 'id')::integer;
begin
  perform from usuario where id = v_id for no key update;
  perform begin_write('{}', p_actor);

  update usuario set "versionSesion" = "versionSesion" + 1 where id = v_id;
  return '{}';
end
$$;
