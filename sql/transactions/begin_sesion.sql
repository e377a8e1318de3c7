-- Begins a session of a user who has logged in.
--
-- Takes {id, strNombreUsuario, strPwd} of the user: the name that was sent, and the hash with which
-- the service has compared the password. Takes {ip, idPeticion} of the request for the audit.
--
-- Returns {id, nombre, idPerfil, correo, celular, imagenUrl, ver}; `ver` is the version of the
-- user's sessions for the token. Returns null if the user has been deactivated or deleted, or has
-- got another name or password, since the comparison.
--
-- Acquires share_usuario and locks the user's row with `for share`, so that nobody deactivates the
-- user meanwhile. There is no caller yet, so it does not call begin_write.
create or replace function begin_sesion(p_credenciales jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_id integer := (p_credenciales ->> 'id')::integer;
  v_usuario record;
begin
  perform share_usuario(v_id);
  select
    id,
    "strNombreUsuario" as nombre,
    "idPerfil",
    "strCorreo" as correo,
    "strNumeroCelular" as celular,
    "imagenUrl",
    "versionSesion" as ver
  into v_usuario
  from usuario
  where id = v_id
    and "strNombreUsuario" = p_credenciales ->> 'strNombreUsuario'
    and "strPwd" = p_credenciales ->> 'strPwd'
    and "idEstadoUsuario"
  for share;
  if not found then
    return null;
  end if;

  perform set_config(
    'llavero.actor',
    row(
      v_id,
      v_usuario.nombre,
      v_usuario."idPerfil",
      (select "strNombrePerfil" from perfil where id = v_usuario."idPerfil"),
      p_actor ->> 'ip',
      p_actor ->> 'idPeticion'
    )::actor::text,
    true
  );
  perform audit('login', 'usuario', v_id, v_usuario.nombre, null, null);
  return to_jsonb(v_usuario);
end
$$;
