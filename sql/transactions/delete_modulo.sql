-- Removes a module with its permission records; without effect when there is none with that id.
-- Returns false for a system module, which stays.
-- `p_actor`: see begin_write; refused when a profile whose records go holds more than the actor's.
create or replace function delete_modulo(p_actor jsonb, p_id integer) returns boolean
language plpgsql
as $$
declare
  v_modulo modulo;
  v_perfiles integer[];
  v_limit jsonb;
begin
  -- Waits for the records that are being added, and lets no more be: the profiles that have some
  -- for this module stay those that they are now.
  perform pg_advisory_xact_lock(7305511406);
  select * into v_modulo from modulo where id = p_id for update;
  select perfiles, limite into v_perfiles, v_limit from begin_write(
    p_actor, array(select "idPerfil" from permisos_perfil where "idModulo" = v_modulo.id)
  );
  perform refuse_beyond(v_limit, v_perfiles);

  if is_modulo_de_sistema(v_modulo."strNombreModulo") then
    return false;
  end if;
  delete from modulo where id = v_modulo.id;
  return true;
end
$$;
