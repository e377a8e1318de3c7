-- Returns true on a primary server. On a standby it raises an error: a standby may lag behind, and
-- would accept a session or a right that has been revoked. A query calls it first in its `where`
-- clause, so that it fails even when no row matches.
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
