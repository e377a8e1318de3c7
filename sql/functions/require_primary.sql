-- True, or an error on a server in recovery, whose rows may be older than a right or a session that
-- has been taken since. `where require_primary() and …` asks it first, and where no row is found too.
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
