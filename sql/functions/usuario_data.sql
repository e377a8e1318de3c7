-- A user as the contract has it (section 2.1), the hash of the password included.
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
