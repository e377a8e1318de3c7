-- Acquires the shared form of the lock of lock_modulos. A transaction needs it before it adds or
-- overwrites permission records, so that no other transaction renames or deletes a module
-- meanwhile.
create or replace function share_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(7305511406);
$$;
