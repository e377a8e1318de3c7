-- Waits until no transaction holds share_usuarios, and makes new ones wait until this transaction
-- ends. Two transactions that exchange the names or the emails of two users would otherwise deadlock
-- in the unique indexes, and nobody becomes or ceases to be an active user with a profile while the
-- first administrator is set up.
create or replace function lock_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock(usuarios_key());
$$;
