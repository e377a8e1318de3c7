-- Waits until no transaction holds share_modulos, and makes new ones wait until this transaction
-- ends. So no transaction writes permission records while a module is renamed or
-- deleted.
create or replace function lock_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock(modulos_key());
$$;
