-- The changes of a profile for the audit (see README.md), from `p_antes` to `p_ahora`, which are both
-- in the form of perfil_data. One is null if the profile is new or deleted.
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
