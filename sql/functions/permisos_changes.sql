-- Takes the permission records before and after a write. Either array may be null, which counts as
-- empty. Returns the changes for the audit line, as README.md describes them: an array with one
-- entry for each profile whose permissions differ, by ascending id of the profile.
--
-- The entry of a profile lists at most 200 modules. If more modules differ, it contains only the
-- numbers of flags. A profile may have 10,000 records, and an audit line that listed them all would
-- be a megabyte long.
--
-- `materialized` makes PostgreSQL compute the flags of a record once, and not again for each
-- expression that uses them. The result is built as json and converted to jsonb once, at the end.
-- Building it as jsonb would copy the inner values again at each level of nesting.
create or replace function permisos_changes(p_antes permisos_perfil[], p_ahora permisos_perfil[])
returns jsonb
language plpgsql stable
as $$
begin
  return (
    with diferencia as materialized (
      select
        "idPerfil",
        "idModulo",
        case when grants_more(ahora, antes) then flags_beyond(ahora, antes) end as granted,
        case when grants_more(antes, ahora) then flags_beyond(antes, ahora) end as revoked
      from unnest(p_antes) as antes
      full join unnest(p_ahora) as ahora using ("idPerfil", "idModulo")
    ),
    por_perfil as (
      select
        "idPerfil" as id,
        count(*) <= 200 as is_named,
        json_object_agg("strNombreModulo", granted) filter (where granted is not null) as granted,
        json_object_agg("strNombreModulo", revoked) filter (where revoked is not null) as revoked,
        coalesce(sum(cardinality(granted)), 0) as num_granted,
        coalesce(sum(cardinality(revoked)), 0) as num_revoked
      from diferencia
      join modulo on modulo.id = "idModulo"
      where granted is not null or revoked is not null
      group by "idPerfil"
    ),
    entrada as (
      select id, json_build_object(
        'idPerfil', id,
        'granted', case when is_named then coalesce(granted, '{}') else to_json(num_granted) end,
        'revoked', case when is_named then coalesce(revoked, '{}') else to_json(num_revoked) end
      ) as contenido
      from por_perfil
    )
    select coalesce(json_agg(contenido order by id)::jsonb, '[]') from entrada
  );
end
$$;
