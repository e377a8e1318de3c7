-- Records the replacement of all permission records of a profile with one row of the audit.
--
-- Takes the records before and after the replacement. The row has the records whose flags differ,
-- and those that exist only before or only after it. `despues` also has `ids`, because every record
-- has a new id: the ids of all records of the profile, in the order of `idModulo`.
create or replace function audit_matriz(
  p_id_perfil integer,
  p_antes permisos_perfil[],
  p_despues permisos_perfil[]
) returns void
language plpgsql
as $$
begin
  -- Flags are the same if neither record has one beyond the other.
  perform audit(
    'update',
    'permisos',
    p_id_perfil,
    (select "strNombrePerfil" from perfil where id = p_id_perfil),
    jsonb_build_object('permisos', coalesce(
      array_agg(audited_permiso(to_jsonb(antes), "strNombreModulo") order by "idModulo")
        filter (where antes.id is not null),
      '{}'
    )),
    jsonb_build_object(
      'permisos', coalesce(
        array_agg(audited_permiso(to_jsonb(despues), "strNombreModulo") order by "idModulo")
          filter (where despues.id is not null),
        '{}'
      ),
      'ids', array(select id from unnest(p_despues) order by "idModulo")
    )
  )
  from unnest(p_antes) as antes
  full join unnest(p_despues) as despues using ("idModulo")
  join modulo on modulo.id = "idModulo"
  where antes.id is null
    or despues.id is null
    or coalesce(flag_beyond(antes, despues), flag_beyond(despues, antes)) is not null;
end
$$;
