-- Returns the key of the advisory lock that lock_modulos and share_modulos acquire.
create or replace function modulos_key() returns bigint
language sql immutable
as $$
  select 7305511406;
$$;
