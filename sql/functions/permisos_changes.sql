-- Returns the changes of permission records for the audit (see README.md), from the records `p_antes`
-- to the records `p_ahora`: one entry for each profile whose permissions differ, by ascending id.
--
-- An entry about more than 200 modules has the numbers of flags in place of names and flags. A matrix
-- can have 10,000 entries, and its line would have a megabyte.
-- `materialized` keeps PostgreSQL from computing the flags again at each place that names them. The
-- result is built as json and converted once: jsonb is built anew at each level.
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
    perfil as (
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
      ) as entrada
      from perfil
    )
    select coalesce(json_agg(entrada order by id)::jsonb, '[]') from entrada
  );
end
$$;
