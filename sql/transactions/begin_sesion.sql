-- Begins a session of a user who has logged in.
--
-- Takes the id of the user, and the hash with which the service has compared the password. Takes
-- {ip, idPeticion} of the request for the audit. Returns {ver}: the version of the user's sessions
-- for the token. Returns {ver: null} if the user has been deactivated or deleted, or has got another
-- password, since the comparison.
--
-- Acquires share_usuario and locks the user's row with `for share`, so that nobody deactivates the
-- user meanwhile. There is no caller yet, so it does not call begin_write.
create or replace function begin_sesion(p_id integer, p_hash text, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_usuario record;
begin
  perform share_usuario(p_id);
  select
    "strNombreUsuario" as nombre,
    "idPerfil",
    "versionSesion" as ver
  into v_usuario
  from usuario
  where id = p_id and "strPwd" = p_hash and "idEstadoUsuario"
  for share;

  if found then
    perform set_config(
      'llavero.actor',
      row(
        p_id,
        v_usuario.nombre,
        v_usuario."idPerfil",
        (select "strNombrePerfil" from perfil where id = v_usuario."idPerfil"),
        p_actor ->> 'ip',
        p_actor ->> 'idPeticion'
      )::actor::text,
      true
    );
    perform audit('login', 'usuario', p_id, v_usuario.nombre, null, null);
  end if;
  return jsonb_build_object('ver', v_usuario.ver);
end
$$;
