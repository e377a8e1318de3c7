-- Lets one transaction at a time write a permission record. The transaction reads which profile has
-- the record and then locks that profile; nobody else can move the record in between.
create or replace function lock_permiso(p_id integer) returns void
language sql
as $$
  select pg_advisory_xact_lock(73055, p_id);
$$;
