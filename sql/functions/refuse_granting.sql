-- Refuses the write if one of the records to be written grants something that the profile
-- `p_limite` does not hold. `p_permisos`: a JSON array of {idModulo, …flags}. If `p_limite`
-- is null, the write has no limit (see begin_write), and nothing is refused.
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
