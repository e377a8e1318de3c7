-- begin_write for one permission record: to be added (`p_id` null), overwritten, or removed
-- (`p_permiso` null), which may be in no profile but those that come back.
-- Tells in this order: an unknown profile or module, as the violation that the write would be;
-- a profile, before or after, that holds more than the actor's; a record that grants more.
create or replace function begin_write_permiso(p_actor jsonb, p_id integer, p_permiso jsonb)
returns integer[]
language plpgsql
as $$
declare
  v_perfil integer := (p_permiso ->> 'idPerfil')::integer;
  v_actual integer;
  v_perfiles integer[];
  v_limit jsonb;
begin
  -- Nobody else moves this record to another profile meanwhile.
  perform pg_advisory_xact_lock(73055, p_id);
  -- No module goes, or gets another name, meanwhile: see delete_modulo.
  perform pg_advisory_xact_lock_shared(7305511406);
  select "idPerfil" into v_actual from permisos_perfil where id = p_id;
  select * into v_perfiles, v_limit from begin_write(p_actor, array[v_actual, v_perfil]);

  if p_permiso is not null and v_perfil <> all(v_perfiles) then
    raise foreign_key_violation using constraint = 'permisos_perfil_perfil_fk';
  end if;
  if p_permiso is not null
    and not exists (select from modulo where id = (p_permiso ->> 'idModulo')::integer)
  then
    raise foreign_key_violation using constraint = 'permisos_perfil_modulo_fk';
  end if;
  perform refuse_beyond(v_limit, v_perfiles);
  perform refuse_granting(v_limit, jsonb_build_array(p_permiso));
  return v_perfiles;
end
$$;
