-- Replaces the whole matrix of one profile. `p_permisos`: a JSON array of
-- {idModulo, bitAgregar, bitEditar, bitConsulta, bitEliminar, bitDetalle}, flags optional.
-- An unknown module, one that comes twice, and an unknown profile with entries are violations, told
-- before anything is written.
-- `p_actor`: see begin_write; refused when the profile holds more than the actor's, or is to.
create or replace function replace_permisos(p_actor jsonb, p_id_perfil integer, p_permisos jsonb)
returns void
language plpgsql
as $$
declare
  v_perfiles integer[];
  v_limit jsonb;
begin
  -- No module goes, or gets another name, meanwhile: see delete_modulo.
  perform pg_advisory_xact_lock_shared(7305511406);
  select * into v_perfiles, v_limit from begin_write(p_actor, array[p_id_perfil]);
  perform refuse_beyond(v_limit, v_perfiles);
  perform refuse_granting(v_limit, p_permisos);

  if v_perfiles = '{}' and p_permisos <> '[]' then
    raise foreign_key_violation using constraint = 'permisos_perfil_perfil_fk';
  end if;
  if jsonb_array_length(p_permisos) <> (
    select count(*) from modulo
    where id in (
      select (entrada ->> 'idModulo')::integer
      from jsonb_array_elements(p_permisos) as entradas (entrada)
    )
  ) then
    raise foreign_key_violation using constraint = 'permisos_perfil_modulo_fk';
  end if;

  delete from permisos_perfil where "idPerfil" = any(v_perfiles);

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
