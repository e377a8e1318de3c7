-- Takes the id of a profile that a write concerns, and acquires the advisory lock of that profile. The
-- lock waits for the writes in progress of all callers with this profile, and their later writes wait
-- for it (see lock_usuario). A null id locks nothing.
create or replace function lock_perfil(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73057, p_id);
$$;
