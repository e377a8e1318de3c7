-- Overwrites a user; a null hash or image leaves the one there is, a new hash ends the sessions.
-- Returns the updated row, or none when there is no user with that id.
-- `p_actor`: see begin_write_usuario.
create or replace function update_usuario(
  p_actor integer, p_id integer, p_nombre text, p_id_perfil integer, p_hash text, p_correo text,
  p_celular text, p_activo boolean, p_imagen_url text
) returns setof usuario
language plpgsql
as $$
begin
  perform begin_write_usuario(p_actor, p_id, p_id_perfil);

  return query
    update usuario
    set "strNombreUsuario" = p_nombre, "idPerfil" = p_id_perfil, "strCorreo" = p_correo,
      "strNumeroCelular" = p_celular, "idEstadoUsuario" = p_activo,
      "strPwd" = coalesce(p_hash, "strPwd"), "imagenUrl" = coalesce(p_imagen_url, "imagenUrl"),
      "versionSesion" = "versionSesion" + (p_hash is not null)::integer
    where id = p_id
    returning *;
end
$$;
