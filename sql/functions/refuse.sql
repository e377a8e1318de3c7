-- Ends a write that its user may not do; the transaction is undone.
create or replace function refuse() returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'LL403', message = 'not allowed';
end
$$;
