-- Takes the id of a user who makes a write or logs in, and acquires the shared lock that excludes
-- lock_usuario for this user. The lock is held until the transaction ends. If the id is null, nothing
-- is locked.
create or replace function share_usuario(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(73056, p_id);
$$;
