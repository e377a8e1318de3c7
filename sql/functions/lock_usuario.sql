-- Takes the id of a user who is to be written, and acquires the advisory lock of that user. The
-- lock waits for the user's writes and logins in progress, and later ones wait for it. A null id
-- locks nothing.
--
-- The lock of the user's row alone would not suffice. PostgreSQL lets further transactions share a
-- row while another one waits for it. So a user could prevent the end of the session by always
-- having a write in progress.
create or replace function lock_usuario(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73056, p_id);
$$;
