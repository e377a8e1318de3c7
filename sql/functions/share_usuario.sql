-- Acquires the shared form of the lock of lock_usuario, for the user with this id, who makes a write or
-- logs in. A null id locks nothing.
create or replace function share_usuario(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(73056, p_id);
$$;
