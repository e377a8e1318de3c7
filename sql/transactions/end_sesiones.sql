-- Ends all sessions of the caller: no token issued so far is valid any more. Returns {}.
--
-- begin_write locks the caller's row for reading only. Two logouts that both held that lock would
-- wait for each other, so the row is locked for the update first.
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
