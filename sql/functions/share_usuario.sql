-- Takes the id of a user who makes a write or logs in. Acquires the lock of lock_usuario in its
-- shared form, which excludes only lock_usuario. A null id locks nothing.
create or replace function share_usuario(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(73056, p_id);
$$;
