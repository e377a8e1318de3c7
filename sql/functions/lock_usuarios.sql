-- Lets one transaction at a time write users. Without this lock, two users who edit each other would
-- deadlock, and so would two whose names or emails are exchanged.
create or replace function lock_usuarios() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511404);
$$;
