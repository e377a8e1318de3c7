-- Waits for every write that has called share_modulos, and makes new ones wait until this transaction
-- ends: no permission record is written while a module is renamed or deleted.
create or replace function lock_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock(modulos_key());
$$;
