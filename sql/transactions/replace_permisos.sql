-- Replaces the whole matrix of one profile. `p_permisos`: a JSON array of
-- {idModulo, bitAgregar, bitEditar, bitConsulta, bitEliminar, bitDetalle}, flags optional.
-- `p_actor`: see begin_write; refused when the profile holds more than the actor's, or is to.
create or replace function replace_permisos(p_actor jsonb, p_id_perfil integer, p_permisos jsonb)
returns void
language plpgsql
as $$
declare
  v_limit jsonb := begin_write(p_actor, array[p_id_perfil]);
begin
  perform refuse_beyond(v_limit, array[p_id_perfil]);
  perform refuse_granting(v_limit, p_permisos);

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
