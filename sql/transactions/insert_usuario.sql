-- Adds a user and returns the row. `p_actor`: see begin_write_usuario.
create or replace function insert_usuario(
  p_actor jsonb, p_nombre text, p_id_perfil integer, p_hash text, p_correo text, p_celular text,
  p_activo boolean, p_imagen_url text, p_imagen_public_id text
) returns setof usuario
language plpgsql
as $$
begin
  perform begin_write_usuario(p_actor, null, p_id_perfil);

  return query
    insert into usuario
      ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
       "idEstadoUsuario", "imagenUrl", "imagenPublicId")
    values
      (p_nombre, p_id_perfil, p_hash, p_correo, p_celular, p_activo, p_imagen_url,
       p_imagen_public_id)
    returning *;
end
$$;
