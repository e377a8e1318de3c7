-- Acquires the advisory lock that a transaction needs before it renames or deletes a module, or
-- sets up an administrator. The lock is exclusive: while a transaction holds it, every other
-- transaction that calls lock_modulos or share_modulos waits. So no other write of the service adds
-- or overwrites permission records meanwhile, and two transactions that exchange the names of two
-- modules do not deadlock in the unique index.
create or replace function lock_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511406);
$$;
