-- Takes the permission records that are to be written, as a JSON array of {idModulo, …flags}, and
-- the id of the profile that limits the write (`limite` of begin_write). Raises LL403 if one of the
-- records grants something that the limiting profile does not hold. The error names the first of
-- these permissions, or an administrator's profile if the record is for an unknown module. If an
-- argument is null, nothing is raised. The limiting profile must be locked.
--
-- The `limit 1` in the lateral subquery makes PostgreSQL look up each record of the limiting
-- profile by its unique key. There is at most one such record, so the limit changes no result. The
-- module is not joined: with such a join, PostgreSQL may go through the records in the order of the
-- modules.
create or replace function refuse_granting(p_permisos jsonb, p_limite integer) returns void
language plpgsql strict
as $$
begin
  perform refuse(coalesce(
    (
      select jsonb_build_object('modulo', "strNombreModulo", 'accion', flag_beyond(permiso, own))
      from modulo
      where id = permiso."idModulo"
    ),
    '{"administrador": true}'
  ))
  from jsonb_populate_recordset(null::permisos_perfil, p_permisos) as permiso
  left join lateral (
    select *
    from permisos_perfil
    where "idPerfil" = p_limite and "idModulo" = permiso."idModulo"
    limit 1
  ) as own on true
  where flag_beyond(permiso, own) is not null;
end
$$;
