-- Acquires the advisory lock of a transaction that writes a user but changes neither name nor
-- email, profile or status, or that only checks a write. The lock is shared: many transactions can
-- hold it at the same time, but none while another transaction holds lock_usuarios. It is held
-- until the transaction ends.
create or replace function share_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(usuarios_key());
$$;
