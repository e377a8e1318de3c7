-- Keeps lock_modulos waiting until this transaction ends: meanwhile no module is renamed or
-- deleted. Any number of transactions can hold this lock at the same time.
create or replace function share_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(modulos_key());
$$;
