-- Overwrites one permission record, and so may move it to another profile or module. An unknown id
-- changes nothing.
--
-- Takes the id of the record, and a record as insert_permiso does. `p_actor` is described in
-- begin_write. Returns {data, changes}; `data` is the record. Both are null if the id is unknown.
--
-- Has the locks and the errors of begin_write_permiso. Also raises a unique violation if the
-- profile has another record for the module.
create or replace function update_permiso(p_id integer, p_permiso jsonb, p_actor jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_perfiles integer[] := begin_write_permiso(p_id, p_permiso, p_actor);
  v_data jsonb;
  v_changes jsonb;
begin
  update permisos_perfil
  set
    "idPerfil" = nuevo."idPerfil",
    "idModulo" = nuevo."idModulo",
    "bitAgregar" = coalesce(nuevo."bitAgregar", false),
    "bitEditar" = coalesce(nuevo."bitEditar", false),
    "bitConsulta" = coalesce(nuevo."bitConsulta", false),
    "bitEliminar" = coalesce(nuevo."bitEliminar", false),
    "bitDetalle" = coalesce(nuevo."bitDetalle", false)
  from jsonb_populate_record(null::permisos_perfil, p_permiso) as nuevo, permisos_perfil as antes
  where permisos_perfil.id = p_id
    and permisos_perfil."idPerfil" = any(v_perfiles)
    and antes.id = p_id
  returning permiso_data(permisos_perfil), permiso_changes(antes, permisos_perfil)
  into v_data, v_changes;
  return jsonb_build_object('data', v_data, 'changes', v_changes);
end
$$;
