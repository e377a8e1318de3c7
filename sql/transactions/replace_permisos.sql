-- Replaces the whole matrix of one profile. `p_permisos`: a JSON array of
-- {idModulo, bitAgregar, bitEditar, bitConsulta, bitEliminar, bitDetalle}, flags optional.
create or replace function replace_permisos(p_id_perfil integer, p_permisos jsonb) returns void
language plpgsql
as $$
begin
  perform lock_perfiles(array[p_id_perfil]);

  delete from permisos_perfil where "idPerfil" = p_id_perfil;

  insert into permisos_perfil
    ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle")
  select p_id_perfil, "idModulo", coalesce("bitAgregar", false), coalesce("bitEditar", false),
    coalesce("bitConsulta", false), coalesce("bitEliminar", false), coalesce("bitDetalle", false)
  from jsonb_to_recordset(p_permisos) as entrada (
    "idModulo" integer, "bitAgregar" boolean, "bitEditar" boolean, "bitConsulta" boolean,
    "bitEliminar" boolean, "bitDetalle" boolean
  );
end
$$;
