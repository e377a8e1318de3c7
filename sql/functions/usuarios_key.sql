-- Returns the key of the advisory lock that lock_usuarios and share_usuarios acquire.
create or replace function usuarios_key() returns bigint
language sql immutable
as $$
  select 7305511404;
$$;
