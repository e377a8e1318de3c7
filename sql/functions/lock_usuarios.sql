-- Lets one transaction at a time write users. Two users who edit each other would otherwise
-- deadlock, and so would two transactions that exchange the names or the emails of two users.
create or replace function lock_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511404);
$$;
