-- Acquires the advisory lock that a transaction needs before it adds or overwrites permission
-- records. The lock is shared: many transactions can hold it at the same time, but meanwhile a
-- transaction that calls lock_modulos waits. So no other transaction renames or deletes a module
-- meanwhile. The lock is held until the transaction ends.
create or replace function share_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(7305511406);
$$;
