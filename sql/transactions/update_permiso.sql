-- Overwrites one permission record. This may move the record to another profile or module. An
-- unknown id changes nothing.
--
-- Takes the id of the record, and a record as insert_permiso does. Returns {data}; `data` is the
-- record, or null if the id is unknown.
--
-- Raises a unique violation if the profile has another record for the module.
create or replace function update_permiso(p_id integer, p_permiso jsonb, p_actor jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_perfiles integer[];
  v_data jsonb;
begin
  v_perfiles := begin_write_permiso(p_id, p_permiso, p_actor);
  -- A record of any other profile was added after begin_write_permiso had looked for it. It counts
  -- as unknown.
  update permisos_perfil
  set
    "idPerfil" = (p_permiso ->> 'idPerfil')::integer,
    "idModulo" = (p_permiso ->> 'idModulo')::integer,
    "bitAgregar" = coalesce((p_permiso ->> 'bitAgregar')::boolean, false),
    "bitEditar" = coalesce((p_permiso ->> 'bitEditar')::boolean, false),
    "bitConsulta" = coalesce((p_permiso ->> 'bitConsulta')::boolean, false),
    "bitEliminar" = coalesce((p_permiso ->> 'bitEliminar')::boolean, false),
    "bitDetalle" = coalesce((p_permiso ->> 'bitDetalle')::boolean, false)
  where id = p_id and "idPerfil" = any(v_perfiles)
  returning to_jsonb(permisos_perfil) into v_data;
  return jsonb_build_object('data', v_data);
end
$$;
