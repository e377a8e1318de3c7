-- Lets one transaction at a time set up the first administrator: replicas start together.
create or replace function lock_administrador() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511403);
$$;
