-- Overwrites one permission record, which may move it to another profile or module.
-- Returns the updated record, or no row when there is none with that id.
-- `p_actor`: as in replace_permisos, for both profiles.
create or replace function update_permiso(
  p_actor jsonb, p_id integer, p_id_perfil integer, p_id_modulo integer, p_agregar boolean,
  p_editar boolean, p_consulta boolean, p_eliminar boolean, p_detalle boolean
) returns setof permisos_perfil
language plpgsql
as $$
declare
  v_perfiles integer[] := begin_write_permiso(p_actor, p_id, jsonb_build_object(
    'idPerfil', p_id_perfil, 'idModulo', p_id_modulo, 'bitAgregar', p_agregar,
    'bitEditar', p_editar, 'bitConsulta', p_consulta, 'bitEliminar', p_eliminar,
    'bitDetalle', p_detalle
  ));
begin
  return query
    update permisos_perfil
    set "idPerfil" = p_id_perfil, "idModulo" = p_id_modulo, "bitAgregar" = p_agregar,
      "bitEditar" = p_editar, "bitConsulta" = p_consulta, "bitEliminar" = p_eliminar,
      "bitDetalle" = p_detalle
    where id = p_id and "idPerfil" = any(v_perfiles)
    returning *;
end
$$;
