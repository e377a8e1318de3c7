-- Removes a module and all permission records for it. A system module is not removed. An unknown id
-- changes nothing.
--
-- Takes the id of the module. Returns {deleted}, which is false for a system module and true
-- otherwise, also for an unknown id.
--
-- Acquires lock_modulos and locks the module's row, so that no record for the module is added
-- meanwhile, not even by a write with `psql`. Then locks with begin_write every profile that has a
-- record for the module.
--
-- Raises LL403 if one of these profiles holds more than the caller's profile, also for a system
-- module.
create or replace function delete_modulo(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_write record;
  v_nombre text;
  v_perfiles integer[];
  v_unlocked integer[];
begin
  perform lock_modulos();
  select "strNombreModulo" into v_nombre from modulo where id = p_id for update;
  v_perfiles := array(select "idPerfil" from permisos_perfil where "idModulo" = p_id);
  perform renew_plans(cardinality(v_perfiles));
  v_write := begin_write(v_perfiles, p_actor);
  perform refuse_beyond(v_write.perfiles, v_write.limite);

  if is_modulo_de_sistema(v_nombre) then
    return '{"deleted": false}';
  end if;
  -- If no name was found above, the module was unknown then, and counts as unknown. Another
  -- transaction may have added it since, because insert_modulo does not wait for lock_modulos.
  if v_nombre is not null then
    -- The records go first. So their rows in the audit have the name of the module, even if
    -- delete_auditoria has removed the rows that name it.
    with deleted as (
      delete from permisos_perfil where "idModulo" = p_id returning "idPerfil"
    )
    select array_agg("idPerfil") into v_unlocked
    from deleted
    where "idPerfil" not in (select unnest(v_write.perfiles));
    -- A write with `psql` may have moved a record to another profile before the deletion. That
    -- profile was not compared above, and is not locked. If another write gives it a permission at
    -- this moment, that write counts as the later one.
    perform refuse_beyond(v_unlocked, v_write.limite);
    delete from modulo where id = p_id;
  end if;
  return '{"deleted": true}';
end
$$;
