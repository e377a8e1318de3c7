-- Raises LL403, which means that the caller may not do this write. PostgreSQL then rolls back the
-- transaction.
create or replace function refuse() returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'LL403', message = 'not allowed';
end
$$;
