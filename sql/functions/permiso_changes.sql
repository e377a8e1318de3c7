-- Takes one permission record before and after a write. `p_antes` is null for a new record, and
-- `p_ahora` for a deleted one. Returns the changes in the form that permisos_changes returns.
--
-- A write of a single record calls this function because it is faster: permisos_changes joins two
-- sets.
create or replace function permiso_changes(p_antes permisos_perfil, p_ahora permisos_perfil)
returns jsonb
language plpgsql stable
as $$
declare
  v_perfil integer := coalesce(p_ahora."idPerfil", p_antes."idPerfil");
  v_modulo integer := coalesce(p_ahora."idModulo", p_antes."idModulo");
  v_granted text[] := flags_beyond(p_ahora, p_antes);
  v_revoked text[] := flags_beyond(p_antes, p_ahora);
  v_nombre text;
begin
  -- The write has moved the record to another profile or module.
  if v_perfil <> p_antes."idPerfil" or v_modulo <> p_antes."idModulo" then
    return permisos_changes(array[p_antes], array[p_ahora]);
  end if;
  if v_granted = '{}' and v_revoked = '{}' then
    return '[]';
  end if;

  select "strNombreModulo" into v_nombre from modulo where id = v_modulo;
  return jsonb_build_array(jsonb_build_object(
    'idPerfil', v_perfil,
    'granted',
    case when v_granted = '{}' then '{}' else jsonb_build_object(v_nombre, v_granted) end,
    'revoked',
    case when v_revoked = '{}' then '{}' else jsonb_build_object(v_nombre, v_revoked) end
  ));
end
$$;
