-- Takes a user before and after a write, in the form of usuario_data. `p_antes` is null for a new
-- user, and `p_ahora` for a deleted one. Returns the changes for the audit line, as README.md
-- describes them.
--
-- The result is logged. So for the password, the email, the phone number and the image it contains
-- only the name of a field that differs, and not its values.
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
