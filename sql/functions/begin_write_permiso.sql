-- Starts the write of one permission record, which is to be added (`p_id` null), overwritten, or
-- removed (`p_permiso` null): takes the advisory locks and calls begin_write. Returns the profiles
-- that are locked: the one that has the record now, and the one that is to have it. A record of any
-- other profile does not exist for this write.
--
-- Raises, in this order: the foreign-key violation that an unknown profile or module would cause;
-- LL403 when one of the two profiles holds more than the caller's; LL403 when the new record grants
-- more than the caller's profile holds. Also raises what begin_write raises, before all of these.
create or replace function begin_write_permiso(p_id integer, p_permiso jsonb, p_actor jsonb)
returns integer[]
language plpgsql
as $$
declare
  v_perfil integer := (p_permiso ->> 'idPerfil')::integer;
  v_actual integer;
  v_write record;
begin
  if p_id is null then
    perform share_modulos();
  else
    perform lock_permiso(p_id), share_modulos();
    select "idPerfil" into v_actual from permisos_perfil where id = p_id;
  end if;
  v_write := begin_write(array[v_actual, v_perfil], p_actor);

  if p_permiso is not null then
    if v_perfil <> all(v_write.perfiles) then
      raise foreign_key_violation using constraint = 'permisos_perfil_perfil_fk';
    end if;
    if not exists (select from modulo where id = (p_permiso ->> 'idModulo')::integer) then
      raise foreign_key_violation using constraint = 'permisos_perfil_modulo_fk';
    end if;
  end if;

  if v_write.limite is not null then
    perform refuse_beyond(v_write.perfiles, v_write.limite);
    if p_permiso is not null then
      perform refuse_granting(jsonb_build_array(p_permiso), v_write.limite);
    end if;
  end if;
  return v_write.perfiles;
end
$$;
