-- Replaces all permission records of one profile (contract, section 4.8). If the profile is unknown
-- and there are no new records, it changes nothing.
--
-- Takes the id of the profile, and the new records as a JSON array of {idModulo, …flags}; a missing
-- flag is false. `p_if_match` is the header `If-Match`, a text with the versions of the profile's
-- records that may be replaced. If it is `*` or null, any version may be replaced. Returns
-- {version}: the version of the new records, or null if the profile is unknown.
--
-- Acquires share_modulos. begin_write locks the profile, so two replacements at the same time
-- follow one another, and the result is the records of the later one.
--
-- Raises in this order:
-- 1. LL403 if the profile holds more than the caller's profile;
-- 2. LL403 if a new record grants more than the caller's profile holds;
-- 3. LL412 if `p_if_match` does not contain the version of the profile's records;
-- 4. a foreign-key violation for an unknown profile, if there are new records;
-- 5. a foreign-key violation for an unknown module;
-- 6. a unique violation for a module that is named twice.
create or replace function replace_permisos(
  p_id_perfil integer,
  p_permisos jsonb,
  p_if_match text,
  p_actor jsonb
) returns jsonb
language plpgsql
as $$
declare
  v_write record;
  v_version text;
  v_antes permisos_perfil[];
begin
  perform share_modulos();
  v_write := begin_write(array[p_id_perfil], p_actor);
  perform renew_plans(jsonb_array_length(p_permisos));
  perform refuse_beyond(v_write.perfiles, v_write.limite);
  perform refuse_granting(p_permisos, v_write.limite);

  -- A profile that begin_write has not locked counts as unknown.
  if p_id_perfil = any(v_write.perfiles) then
    select "versionPermisos" into v_version from perfil where id = p_id_perfil;
  end if;
  -- If `p_if_match` is null, this condition is not true. An unknown profile has no version.
  if p_if_match <> '*'
    and (v_version is null or strpos(p_if_match, '"' || v_version || '"') = 0) then
    raise exception using errcode = 'LL412', message = 'other version';
  end if;

  if v_version is null then
    if p_permisos <> '[]' then
      raise foreign_key_violation using constraint = 'permisos_perfil_perfil_fk';
    end if;
    return '{"version": null}';
  end if;

  -- The foreign key would refuse an unknown module, too. But each try would use up an id for each
  -- record, and leave no row in the audit.
  if exists (
    select
    from jsonb_populate_recordset(null::permisos_perfil, p_permisos) as permiso
    where not exists (select from modulo where id = permiso."idModulo")
  ) then
    raise foreign_key_violation using constraint = 'permisos_perfil_modulo_fk';
  end if;

  perform set_config('llavero.matriz', 'true', true);
  with deleted as (
    delete from permisos_perfil
    where "idPerfil" = p_id_perfil
    returning permisos_perfil as permiso
  )
  select array_agg(permiso) into v_antes from deleted;

  insert into permisos_perfil (
    "idPerfil",
    "idModulo",
    "bitAgregar",
    "bitEditar",
    "bitConsulta",
    "bitEliminar",
    "bitDetalle"
  )
  select
    p_id_perfil,
    "idModulo",
    coalesce("bitAgregar", false),
    coalesce("bitEditar", false),
    coalesce("bitConsulta", false),
    coalesce("bitEliminar", false),
    coalesce("bitDetalle", false)
  from jsonb_populate_recordset(null::permisos_perfil, p_permisos);
  perform set_config('llavero.matriz', 'false', true);
  perform audit_matriz(p_id_perfil, v_antes);

  return (
    select jsonb_build_object('version', "versionPermisos")
    from perfil
    where id = p_id_perfil
  );
end
$$;
