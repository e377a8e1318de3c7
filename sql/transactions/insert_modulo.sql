-- Adds a module.
--
-- Takes {strNombreModulo, semejante}. `semejante` is the form of the name that is compared with the
-- names of the system modules (moduloRecord in src/modulo/queries.ts). Returns {data}; `data` is
-- the new module.
--
-- Raises a unique violation if a module has the name already. If begin_write returns a limit,
-- raises LL403 if `semejante` is the name of a system module.
create or replace function insert_modulo(p_modulo jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_write record;
  v_data jsonb;
begin
  v_write := begin_write('{}', p_actor);
  if v_write.limite is not null and is_modulo_de_sistema(p_modulo ->> 'semejante') then
    perform refuse('{"administrador": true}');
  end if;

  insert into modulo ("strNombreModulo")
  values (p_modulo ->> 'strNombreModulo')
  returning to_jsonb(modulo) into v_data;

  return jsonb_build_object('data', v_data);
end
$$;
