-- Returns true on a primary server and raises an error on a standby, which may lag behind: a
-- session or a right that has been revoked could still be there. Queries call it first in their
-- `where` clause, so that they fail even if no row matches.
create or replace function require_primary() returns boolean
language plpgsql stable
as $$
begin
  if pg_is_in_recovery() then
    raise read_only_sql_transaction using message = 'server is in recovery';
  end if;
  return true;
end
$$;
