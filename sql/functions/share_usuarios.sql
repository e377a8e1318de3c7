-- Acquires the advisory lock that a transaction needs before it changes only the password, the
-- phone number or the image of a user. The lock is shared: many transactions can hold it at the same
-- time, but meanwhile a transaction that calls lock_usuarios waits. It is held until the transaction
-- ends.
create or replace function share_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(7305511404);
$$;
