-- Ends all sessions of the caller. Afterwards no token that was issued before is valid.
--
-- Returns {}.
--
-- Locks the caller's row with `for no key update` before it calls begin_write, which locks it with
-- `for share`. If only begin_write locked the row, two logouts of the same user could both hold the
-- shared lock, and would deadlock at the update.
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
