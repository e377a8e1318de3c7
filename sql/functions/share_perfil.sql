-- Takes the id of a caller's profile, and acquires the shared lock that excludes lock_perfil for this
-- profile.
create or replace function share_perfil(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock_shared(73057, p_id);
$$;
