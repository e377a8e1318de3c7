-- Acquires an advisory lock for the permission record with the id `p_id`. Only one transaction at a
-- time can hold it. It is held until the transaction ends.
--
-- A write of a record first reads which profile has the record, and then locks that profile.
-- Without this lock, another transaction could move the record to another profile in between.
create or replace function lock_permiso(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73055, p_id);
$$;
