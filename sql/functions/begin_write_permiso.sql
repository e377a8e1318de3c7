-- Begins a write of one permission record. insert_permiso, update_permiso and delete_permiso call
-- it first.
--
-- Takes the id of the record, which is null for a new record. Takes the new content of the record,
-- {idPerfil, idModulo, …flags}, which is null for a deletion.
--
-- Returns the ids of the record's present profile and of its new profile, if they exist. Both
-- profiles are locked. A later statement may write only a record of these profiles: a record of any
-- other profile was added after this function had looked for it, and counts as unknown.
--
-- Acquires share_modulos, so that the module is neither renamed nor deleted meanwhile. Acquires an
-- advisory lock for an existing record, so that nobody moves the record to another profile before
-- its profile is locked. Then locks the caller and the profiles with begin_write.
--
-- Raises in this order:
-- 1. the foreign-key violation that the new content would cause, if its profile is unknown;
-- 2. the same if its module is unknown;
-- 3. LL403 if one of the two profiles holds more than the caller's profile;
-- 4. LL403 if the new content grants more than the caller's profile holds.
create or replace function begin_write_permiso(p_id integer, p_permiso jsonb, p_actor jsonb)
returns integer[]
language plpgsql
as $$
declare
  v_new_perfil integer := (p_permiso ->> 'idPerfil')::integer;
  v_old_perfil integer;
  v_write record;
begin
  perform share_modulos();
  -- If `p_id` is null, this acquires no lock, and the next statement finds no record.
  perform pg_advisory_xact_lock(73055, p_id);
  select "idPerfil" into v_old_perfil from permisos_perfil where id = p_id;
  v_write := begin_write(array[v_old_perfil, v_new_perfil], p_actor);

  if p_permiso is not null then
    if v_new_perfil <> all(v_write.perfiles) then
      raise foreign_key_violation using constraint = 'permisos_perfil_perfil_fk';
    end if;
    if not exists (select from modulo where id = (p_permiso ->> 'idModulo')::integer) then
      raise foreign_key_violation using constraint = 'permisos_perfil_modulo_fk';
    end if;
  end if;
  perform refuse_beyond(v_write.perfiles, v_write.limite);
  if p_permiso is not null then
    perform refuse_granting(jsonb_build_array(p_permiso), v_write.limite);
  end if;
  return v_write.perfiles;
end
$$;
