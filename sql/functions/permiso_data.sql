-- Takes a row of the table `permisos_perfil`. Returns the permission record in the form of the
-- contract (section 2.4).
create or replace function permiso_data(p_permiso permisos_perfil) returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'id', p_permiso.id,
    'idPerfil', p_permiso."idPerfil",
    'idModulo', p_permiso."idModulo",
    'bitAgregar', p_permiso."bitAgregar",
    'bitEditar', p_permiso."bitEditar",
    'bitConsulta', p_permiso."bitConsulta",
    'bitEliminar', p_permiso."bitEliminar",
    'bitDetalle', p_permiso."bitDetalle"
  );
$$;
