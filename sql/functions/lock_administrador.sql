-- Lets one transaction at a time set up the first administrator, as replicas may start together.
create or replace function lock_administrador() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511403);
$$;
