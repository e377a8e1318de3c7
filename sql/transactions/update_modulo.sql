-- Renames a module and returns it, or no row when there is none with that id.
-- Whoever has a limit (see begin_write) can rename neither a system module nor one that permission
-- records name, and can't take a system module's name. `p_semejante`: as in insert_modulo.
create or replace function update_modulo(
  p_actor jsonb, p_id integer, p_nombre text, p_semejante text
) returns setof modulo
language plpgsql
as $$
declare
  v_perfiles integer[];
  v_limit jsonb;
  v_actual text;
begin
  -- Two modules that trade their names would otherwise wait for each other's.
  perform pg_advisory_xact_lock(7305511405);
  select perfiles, limite into v_perfiles, v_limit from begin_write_modulo(p_actor, p_id);

  select "strNombreModulo" into v_actual from modulo where id = p_id;
  if not found then
    return;
  end if;

  if v_limit is not null and p_nombre <> v_actual and (
    is_modulo_de_sistema(v_actual) or is_modulo_de_sistema(p_semejante) or v_perfiles <> '{}'
  ) then
    perform refuse();
  end if;

  return query update modulo set "strNombreModulo" = p_nombre where id = p_id returning *;
end
$$;
