-- Takes the name of a module before and after a write. `p_antes` is null for a new module, and
-- `p_ahora` for a deleted one. Returns the changes for the audit line, as README.md describes them.
create or replace function modulo_changes(p_antes text, p_ahora text) returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'strNombreModulo', changed_pair(to_jsonb(p_antes), to_jsonb(p_ahora))
  ));
$$;
