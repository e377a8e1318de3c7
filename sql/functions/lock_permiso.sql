-- Keeps one permission record in its profile until this transaction ends: its profile is read first
-- and locked afterwards, and nobody else may move the record in between.
create or replace function lock_permiso(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73055, p_id);
$$;
