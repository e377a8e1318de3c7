-- Lets one transaction at a time name modules. Two modules that exchange their names at the same
-- time would otherwise deadlock in the unique index.
create or replace function lock_nombres_de_modulo() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511405);
$$;
