-- Renames a module. An unknown id changes nothing.
--
-- Takes the id of the module, and a record as insert_modulo does. Returns {data}; `data` is the
-- module, or null if the id is unknown.
--
-- Acquires lock_modulos and locks the module's row, so that no record for the module is added
-- meanwhile, not even by a write with `psql`. Then locks with begin_write every profile that has a
-- record for the module.
--
-- Raises a unique violation if another module has the name. If begin_write returns a limit and the
-- name changes, raises LL403 in each of these cases:
-- - The module is a system module.
-- - `semejante` is the name of a system module.
-- - A profile has a record for the module.
create or replace function update_modulo(p_id integer, p_modulo jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_new_nombre text := p_modulo ->> 'strNombreModulo';
  v_old_nombre text;
  v_write record;
  v_data jsonb;
begin
  perform lock_modulos();
  select "strNombreModulo" into v_old_nombre from modulo where id = p_id for update;

  -- The permission map of a profile with a record for the module contains the module's name. The
  -- trigger modulo_renamed gives each such profile a new version, so all of them are locked here.
  v_write := begin_write(
    array(select "idPerfil" from permisos_perfil where "idModulo" = p_id),
    p_actor
  );
  -- If the module is unknown, the comparison of the names is null, and nothing is refused.
  if v_write.limite is not null and v_new_nombre <> v_old_nombre and (
    is_modulo_de_sistema(v_old_nombre)
    or is_modulo_de_sistema(p_modulo ->> 'semejante')
    or exists (select from permisos_perfil where "idModulo" = p_id)
  ) then
    perform refuse('{"administrador": true}');
  end if;

  -- If no name was found above, the module was unknown then, and counts as unknown. Another
  -- transaction may have added it since, because insert_modulo does not wait for lock_modulos.
  update modulo
  set "strNombreModulo" = v_new_nombre
  where id = p_id and v_old_nombre is not null
  returning to_jsonb(modulo) into v_data;

  return jsonb_build_object('data', v_data);
end
$$;
