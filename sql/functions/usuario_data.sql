-- Takes a row of the table `usuario`. Returns the user in the form of the contract (section 2.1),
-- including the hash of the password.
create or replace function usuario_data(p_usuario usuario) returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'id', p_usuario.id,
    'strNombreUsuario', p_usuario."strNombreUsuario",
    'idPerfil', p_usuario."idPerfil",
    'strPwd', p_usuario."strPwd",
    'strCorreo', p_usuario."strCorreo",
    'strNumeroCelular', p_usuario."strNumeroCelular",
    'idEstadoUsuario', p_usuario."idEstadoUsuario",
    'imagenUrl', p_usuario."imagenUrl"
  );
$$;
