-- Waits until no transaction holds share_usuarios, and makes new ones wait until this transaction
-- ends. Two transactions that exchange the names or the emails of two users would otherwise
-- deadlock in the unique indexes. While a transaction holds this lock, no other one activates a user
-- or gives a user another profile; ensure_administrador depends on that.
create or replace function lock_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock(usuarios_key());
$$;
