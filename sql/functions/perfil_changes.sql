-- Returns the changes of a profile for the audit (see README.md), from `p_antes` to `p_ahora`. Both
-- are in the form of perfil_data. `p_antes` is null for a new profile, and `p_ahora` for a deleted
-- one.
create or replace function perfil_changes(p_antes jsonb, p_ahora jsonb) returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'strNombrePerfil',
    changed_pair(p_antes -> 'strNombrePerfil', p_ahora -> 'strNombrePerfil'),
    'bitAdministrador',
    changed_pair(p_antes -> 'bitAdministrador', p_ahora -> 'bitAdministrador')
  ));
$$;
