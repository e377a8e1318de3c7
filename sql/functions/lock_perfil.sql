-- Takes the id of a profile that a write concerns, and acquires the advisory lock of that profile. It
-- waits for the writes that callers with this profile have in progress. Writes that they begin later
-- wait in turn (see lock_usuario). The lock is held until the transaction ends. If the id is null,
-- nothing is locked.
create or replace function lock_perfil(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73057, p_id);
$$;
