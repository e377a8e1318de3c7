-- Renames a module and returns it, or no row when there is none with that id.
-- Whoever has a limit (see begin_write) can rename neither a system module nor one that permission
-- records name, and can't take a system module's name. `p_semejante`: as in insert_modulo.
create or replace function update_modulo(
  p_actor jsonb, p_id integer, p_nombre text, p_semejante text
) returns setof modulo
language plpgsql
as $$
declare
  v_modulo modulo;
  v_perfiles integer[];
  v_limit jsonb;
begin
  -- Two modules that trade their names would otherwise wait for each other's.
  perform pg_advisory_xact_lock(7305511405);
  -- As in delete_modulo: the maps of the profiles that have records for it change.
  perform pg_advisory_xact_lock(7305511406);
  select * into v_modulo from modulo where id = p_id for update;
  select perfiles, limite into v_perfiles, v_limit from begin_write(
    p_actor, array(select "idPerfil" from permisos_perfil where "idModulo" = v_modulo.id)
  );

  if v_limit is not null and p_nombre <> v_modulo."strNombreModulo" and (
    is_modulo_de_sistema(v_modulo."strNombreModulo") or is_modulo_de_sistema(p_semejante)
    or v_perfiles <> '{}'
  ) then
    perform refuse();
  end if;

  return query
    update modulo set "strNombreModulo" = p_nombre where id = v_modulo.id returning *;
end
$$;
