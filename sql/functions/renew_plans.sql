-- Takes the number of permission records or profiles that the next statements of the transaction go
-- through one by one. If it is more than 1,000, discards the plans that this connection keeps.
--
-- The connection keeps the plans of the functions' statements, and of the checks of the two foreign
-- keys. A plan that was made while a table was small reads the whole table for each record. If the
-- table has grown since then and has not been analysed yet, the old plans for 10,000 records exceed
-- the `statement_timeout`.
create or replace function renew_plans(p_permisos bigint) returns void
language plpgsql
as $$
begin
  if p_permisos > 1000 then
    discard plans;
  end if;
end
$$;
