-- Keeps every module as it is until this transaction ends (see lock_modulos). Any number of writes
-- hold this lock at the same time.
create or replace function share_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(modulos_key());
$$;
