-- Adds one permission record.
--
-- Takes {idPerfil, idModulo, …flags}; a missing flag is false. Returns {data}; `data` is the new
-- record.
--
-- Raises a unique violation if the profile has a record for the module already.
create or replace function insert_permiso(p_permiso jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_data jsonb;
begin
  perform begin_write_permiso(null, p_permiso, p_actor);

  insert into permisos_perfil (
    "idPerfil",
    "idModulo",
    "bitAgregar",
    "bitEditar",
    "bitConsulta",
    "bitEliminar",
    "bitDetalle"
  )
  values (
    (p_permiso ->> 'idPerfil')::integer,
    (p_permiso ->> 'idModulo')::integer,
    coalesce((p_permiso ->> 'bitAgregar')::boolean, false),
    coalesce((p_permiso ->> 'bitEditar')::boolean, false),
    coalesce((p_permiso ->> 'bitConsulta')::boolean, false),
    coalesce((p_permiso ->> 'bitEliminar')::boolean, false),
    coalesce((p_permiso ->> 'bitDetalle')::boolean, false)
  )
  returning to_jsonb(permisos_perfil) into v_data;
  return jsonb_build_object('data', v_data);
end
$$;
