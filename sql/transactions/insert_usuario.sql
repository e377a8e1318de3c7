-- Adds a user.
--
-- Takes {strNombreUsuario, idPerfil, strPwd, strCorreo, strNumeroCelular, idEstadoUsuario,
-- imagenUrl, imagenPublicId}; `strPwd` is the hash. The keys after `strCorreo` may be missing, and
-- a missing `idEstadoUsuario` is true. Returns {data}; `data` is the new user.
--
-- Raises a unique violation if another user has the name or the email.
create or replace function insert_usuario(p_usuario jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_data jsonb;
begin
  perform begin_write_usuario(null, (p_usuario ->> 'idPerfil')::integer, p_actor);

  insert into usuario (
    "strNombreUsuario",
    "idPerfil",
    "strPwd",
    "strCorreo",
    "strNumeroCelular",
    "idEstadoUsuario",
    "imagenUrl",
    "imagenPublicId"
  )
  values (
    p_usuario ->> 'strNombreUsuario',
    (p_usuario ->> 'idPerfil')::integer,
    p_usuario ->> 'strPwd',
    p_usuario ->> 'strCorreo',
    p_usuario ->> 'strNumeroCelular',
    coalesce((p_usuario ->> 'idEstadoUsuario')::boolean, true),
    p_usuario ->> 'imagenUrl',
    p_usuario ->> 'imagenPublicId'
  )
  returning to_jsonb(usuario) into v_data;
  return jsonb_build_object('data', v_data);
end
$$;
