-- The changes of a user for the audit (see README.md), from `p_antes` to `p_ahora`, which are both in
-- the form of usuario_data. One is null if the user is new or deleted. The fields with personal data
-- and the password stand in it by name alone.
create or replace function usuario_changes(p_antes jsonb, p_ahora jsonb) returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'strNombreUsuario',
    changed_pair(p_antes -> 'strNombreUsuario', p_ahora -> 'strNombreUsuario'),
    'idPerfil',
    changed_pair(p_antes -> 'idPerfil', p_ahora -> 'idPerfil'),
    'idEstadoUsuario',
    changed_pair(p_antes -> 'idEstadoUsuario', p_ahora -> 'idEstadoUsuario'),
    'changed',
    nullif(to_jsonb(array_remove(array[
      changed_name('strPwd', p_antes, p_ahora),
      changed_name('strCorreo', p_antes, p_ahora),
      changed_name('strNumeroCelular', p_antes, p_ahora),
      changed_name('imagenUrl', p_antes, p_ahora)
    ], null)), '[]')
  ));
$$;
