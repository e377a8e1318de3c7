-- Adds a module and returns it. `p_semejante`: the name after everything that looks alike is made
-- the same; whoever has a limit (see begin_write) can't take a system module's.
create or replace function insert_modulo(p_actor jsonb, p_nombre text, p_semejante text)
returns setof modulo
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(7305511405);
  if (begin_write(p_actor, '{}')).limite is not null and is_modulo_de_sistema(p_semejante) then
    perform refuse();
  end if;

  return query insert into modulo ("strNombreModulo") values (p_nombre) returning *;
end
$$;
