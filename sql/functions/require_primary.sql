-- Returns true on a primary server. Raises read_only_sql_transaction (25006) on a standby, because
-- a standby may not know yet that a session has ended or that a permission was revoked.
--
-- A query that a standby must not answer calls this function in its `where` clause. PostgreSQL
-- evaluates such a condition, which depends on no row, before it reads any. So the query fails on a
-- standby even if no row would match.
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
