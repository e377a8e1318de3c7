-- Adds one permission record and returns it. `p_actor`: as in replace_permisos.
create or replace function insert_permiso(
  p_actor jsonb, p_id_perfil integer, p_id_modulo integer, p_agregar boolean, p_editar boolean,
  p_consulta boolean, p_eliminar boolean, p_detalle boolean
) returns setof permisos_perfil
language plpgsql
as $$
begin
  perform begin_write_permiso(p_actor, null, jsonb_build_object(
    'idPerfil', p_id_perfil, 'idModulo', p_id_modulo, 'bitAgregar', p_agregar,
    'bitEditar', p_editar, 'bitConsulta', p_consulta, 'bitEliminar', p_eliminar,
    'bitDetalle', p_detalle
  ));

  return query
    insert into permisos_perfil
      ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle")
    values
      (p_id_perfil, p_id_modulo, p_agregar, p_editar, p_consulta, p_eliminar, p_detalle)
    returning *;
end
$$;
