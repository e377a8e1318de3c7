-- Overwrites a user; a null hash or image leaves the one there is, a new hash ends the sessions.
-- Returns the updated row and the name of the hosted image that the new one replaces, or no row
-- when there is no user with that id. `p_actor`: see begin_write_usuario.
create or replace function update_usuario(
  p_actor jsonb, p_id integer, p_nombre text, p_id_perfil integer, p_hash text, p_correo text,
  p_celular text, p_activo boolean, p_imagen_url text, p_imagen_public_id text
) returns table (actualizado usuario, reemplazada text)
language plpgsql
as $$
begin
  if not begin_write_usuario(p_actor, p_id, p_id_perfil) then
    return;
  end if;

  if p_imagen_url is not null then
    select "imagenPublicId" into reemplazada from usuario where id = p_id;
  end if;

  update usuario
  set "strNombreUsuario" = p_nombre, "idPerfil" = p_id_perfil, "strCorreo" = p_correo,
    "strNumeroCelular" = p_celular, "idEstadoUsuario" = p_activo,
    "strPwd" = coalesce(p_hash, "strPwd"),
    "versionSesion" = "versionSesion" + (p_hash is not null)::integer,
    "imagenUrl" = coalesce(p_imagen_url, "imagenUrl"),
    "imagenPublicId" = coalesce(p_imagen_public_id, "imagenPublicId")
  where id = p_id
  returning * into actualizado;
  return next;
end
$$;
