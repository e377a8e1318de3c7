-- Acquires an advisory lock that only one transaction at a time can hold. It is held until the
-- transaction ends. Replicas may start together, and without the lock each of them could set up an
-- administrator.
create or replace function lock_administrador() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511403);
$$;
