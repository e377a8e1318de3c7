-- Takes a profile before and after a write, in the form of perfil_data. `p_antes` is null for a new
-- profile, and `p_ahora` for a deleted one. Returns the changes for the audit line, as README.md
-- describes them.
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
