-- Ends all sessions of the caller. Afterwards no token that was issued before is valid.
--
-- Returns {}.
--
-- Acquires lock_usuario for the caller before it calls begin_write, which acquires share_usuario.
-- With the shared lock alone, two logouts of the same user would deadlock at the update.
create or replace function end_sesiones(p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_id integer := (p_actor ->> 'id')::integer;
begin
  perform lock_usuario(v_id);
  perform begin_write('{}', p_actor);

  update usuario set "versionSesion" = "versionSesion" + 1 where id = v_id;
  return '{}';
end
$$;
