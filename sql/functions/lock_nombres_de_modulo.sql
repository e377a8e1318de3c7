-- Acquires the advisory lock that a transaction needs before it adds or renames a module. Only one
-- transaction at a time can hold it. It is held until the transaction ends. Without it, two
-- transactions that exchange the names of two modules could deadlock in the unique index.
create or replace function lock_nombres_de_modulo() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511405);
$$;
