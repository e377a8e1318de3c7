-- Takes the number of permission records that the transaction is about to write. If it is more than
-- 1,000, discards the plans that this connection keeps.
--
-- PostgreSQL checks the two foreign keys of each record with plans that the connection keeps. A
-- plan that was made while `modulo` was small reads the whole table. If the table has grown since
-- then and has not been analysed yet, 10,000 checks with the old plan exceed the
-- `statement_timeout`.
create or replace function renew_plans(p_permisos bigint) returns void
language plpgsql
as $$
begin
  if p_permisos > 1000 then
    discard plans;
  end if;
end
$$;
