-- Takes the id of a user who is to be written, and acquires the advisory lock of that user. It waits
-- for the writes that the user has in progress. Writes that the user begins later wait in turn.
-- The lock is held until the transaction ends. If the id is null, nothing is locked.
--
-- The lock of the user's row alone would not suffice. PostgreSQL lets further transactions share a row
-- while another one waits for it. So a user could prevent the end of the session by always having
-- a write in progress.
create or replace function lock_usuario(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73056, p_id);
$$;
