-- Takes the ids of two profiles. Returns what `p_propio` lacks of what `p_id_perfil` holds, in the form
-- that refuse takes: an administrator's profile, or the permission for the module with the lowest id.
-- Returns null if `p_propio` lacks nothing. Whether it lacks anything is decided by beyond.
--
-- Acquires no locks.
create or replace function lacking(p_id_perfil integer, p_propio integer) returns jsonb
language plpgsql stable
as $$
declare
  v_needs jsonb;
begin
  if exists (select from perfil where id = p_id_perfil and "bitAdministrador") then
    return jsonb_build_object('administrador', true, 'perfil', p_id_perfil);
  end if;

  select jsonb_build_object(
    'modulo', "strNombreModulo",
    'accion', flag_beyond(suyo, propio),
    'perfil', p_id_perfil
  )
  into v_needs
  from permisos_perfil as suyo
  join modulo on modulo.id = suyo."idModulo"
  left join permisos_perfil as propio
    on propio."idPerfil" = p_propio and propio."idModulo" = suyo."idModulo"
  where suyo."idPerfil" = p_id_perfil and grants_more(suyo, propio)
  order by suyo."idModulo"
  limit 1;
  return v_needs;
end
$$;
