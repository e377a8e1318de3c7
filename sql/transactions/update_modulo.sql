-- Renames a module. An unknown id changes nothing.
--
-- Takes the id of the module, and a record as insert_modulo does. Returns {data}; `data` is the
-- module, or null if the id is unknown.
--
-- Acquires lock_modulos, so that no profile gets a record for the module meanwhile, and so that two
-- transactions that exchange the names of two modules do not deadlock in the unique index. Then
-- locks with begin_write every profile that has a record for the module.
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
  v_ahora text := p_modulo ->> 'strNombreModulo';
  v_antes text;
  v_write record;
  v_data jsonb;
begin
  perform lock_modulos();
  select "strNombreModulo" into v_antes from modulo where id = p_id;

  -- If a profile has a record for the module, its permission map contains the module's name. A
  -- trigger will give each such profile a new `versionPermisos`, so all of them are locked here.
  v_write := begin_write(
    array(select "idPerfil" from permisos_perfil where "idModulo" = p_id),
    p_actor
  );
  if v_write.limite is not null and v_ahora <> v_antes and (
    is_modulo_de_sistema(v_antes)
    or is_modulo_de_sistema(p_modulo ->> 'semejante')
    or v_write.perfiles <> '{}'
  ) then
    perform refuse('{"administrador": true}');
  end if;

  -- Another transaction may have added the module since its name was read.
  update modulo
  set "strNombreModulo" = v_ahora
  where id = p_id and v_antes is not null
  returning to_jsonb(modulo) into v_data;

  return jsonb_build_object('data', v_data);
end
$$;
