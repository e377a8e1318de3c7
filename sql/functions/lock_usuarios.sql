-- Acquires the advisory lock that a transaction needs before it adds or removes a user, or changes
-- a user's name, email, profile or status. The lock is exclusive: while a transaction holds it,
-- every other transaction that calls lock_usuarios or share_usuarios waits. It is held until the
-- transaction ends.
--
-- Without it, two transactions that exchange the names or the emails of two users could deadlock in
-- the unique indexes. ensure_administrador also depends on it: meanwhile no other replica sets up
-- an administrator, and no other transaction activates a user or gives a user another profile.
create or replace function lock_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511404);
$$;
