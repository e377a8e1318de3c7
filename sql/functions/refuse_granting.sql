-- Takes the permission records that are to be written, as a JSON array of {idModulo, …flags}, and
-- the id of the profile that limits the write (`limite` of begin_write). Raises LL403 if one of the
-- records grants something that the limiting profile does not hold. If `p_limite` is null, the
-- write has no limit, and nothing is raised.
--
-- Acquires no locks, because begin_write has locked the limiting profile before.
create or replace function refuse_granting(p_permisos jsonb, p_limite integer) returns void
language plpgsql
as $$
begin
  if p_limite is null then
    return;
  end if;
  if exists (
    select
    from jsonb_populate_recordset(null::permisos_perfil, p_permisos) as permiso
    left join permisos_perfil as propio
      on propio."idPerfil" = p_limite and propio."idModulo" = permiso."idModulo"
    where grants_more(permiso, propio)
  ) then
    perform refuse();
  end if;
end
$$;
