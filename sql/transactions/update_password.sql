-- Gives the caller a new password. The trigger prepare_usuario ends all sessions of the caller.
--
-- Takes the hash of the new password. Returns {id, idPerfil, nombre, ver} for the new token; `ver`
-- is the new version of the caller's sessions.
--
-- Acquires lock_usuario before begin_write for the same reason as end_sesiones.
create or replace function update_password(p_hash text, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_id integer := (p_actor ->> 'id')::integer;
  v_token jsonb;
begin
  perform lock_usuario(v_id);
  perform begin_write('{}', p_actor);

  update usuario
  set "strPwd" = p_hash
  where id = v_id
  returning jsonb_build_object(
    'id', id,
    'idPerfil', "idPerfil",
    'nombre', "strNombreUsuario",
    'ver', "versionSesion"
  )
  into v_token;
  return v_token;
end
$$;
