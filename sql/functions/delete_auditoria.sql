-- Removes the rows of the audit that are older than `before`, and returns their number. Adds a row
-- about the removal. An operator calls this function, and the service never does.
--
-- protect_auditoria (sql/migrations/0008_auditoria.sql) lets rows be removed while
-- `llavero.retencion` is true. With the clause `set llavero.retencion`, PostgreSQL itself would
-- restore the value when the function ends. But only a superuser may create such a function.
create or replace function delete_auditoria(before timestamptz) returns bigint
language plpgsql
as $$
declare
  v_removed bigint;
begin
  perform set_config('llavero.retencion', 'true', true);
  delete from auditoria where fecha < before;
  get diagnostics v_removed = row_count;
  perform set_config('llavero.retencion', 'false', true);
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
