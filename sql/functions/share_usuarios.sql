-- Keeps lock_usuarios waiting until this transaction ends. Any number of transactions can hold this
-- lock at the same time.
create or replace function share_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(usuarios_key());
$$;
