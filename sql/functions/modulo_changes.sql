-- Returns the changes of a module for the audit (see README.md), from the name `p_antes` to the
-- name `p_ahora`. `p_antes` is null for a new module, and `p_ahora` for a deleted one.
create or replace function modulo_changes(p_antes text, p_ahora text) returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'strNombreModulo', changed_pair(to_jsonb(p_antes), to_jsonb(p_ahora))
  ));
$$;
