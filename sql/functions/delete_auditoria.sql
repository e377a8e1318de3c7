-- Removes the rows of the audit from before `before`, and returns their number. Adds a row about the
-- removal. Nothing in the service calls this function: an operator does.
--
-- protect_auditoria (sql/migrations/0008_auditoria.sql) lets only this function remove rows.
create or replace function delete_auditoria(before timestamptz) returns bigint
language plpgsql
as $$
declare
  v_removed bigint;
begin
  delete from auditoria where fecha < before;
  get diagnostics v_removed = row_count;
  perform audit(
    'delete',
    'auditoria',
    null,
    null,
    null,
    jsonb_build_object('before', before, 'rows', v_removed)
  );
  return v_removed;
end
$$;
