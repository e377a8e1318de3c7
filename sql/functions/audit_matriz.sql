-- Completes a replacement of all permission records of a profile. Gives the profile a new version,
-- counts its records, and adds one row to the audit.
--
-- Takes the records before the replacement, or null if there were none. Reads the new records from
-- the table. The row has the records whose flags differ, and those that exist only before or only
-- after the replacement. Every record gets a new id. So `despues` also has `ids`, the ids of all
-- records of the profile in the order of `idModulo`.
--
-- The statement reads permisos_perfil. So when the table gets a column, PostgreSQL plans the
-- statement anew, and the audit has that column. An aggregate without `group by` has one row, so
-- record_permisos is called once, even if no record differs.
create or replace function audit_matriz(p_id_perfil integer, p_antes permisos_perfil[])
returns void
language plpgsql
as $$
begin
  perform record_permisos(
    p_id_perfil,
    -- The records after the replacement minus those before it. A record that only changes is
    -- counted in both.
    count(despues.id) - count(antes.id),
    jsonb_build_object('permisos', coalesce(
      array_agg(fila_antes order by modulo.id) filter (where antes.id is not null),
      '{}'
    )),
    jsonb_build_object(
      'permisos', coalesce(
        array_agg(fila_despues order by modulo.id) filter (where despues.id is not null),
        '{}'
      ),
      'ids', array(select id from permisos_perfil where "idPerfil" = p_id_perfil order by "idModulo")
    )
  )
  from unnest(p_antes) as antes
  full join (
    select * from permisos_perfil where "idPerfil" = p_id_perfil
  ) as despues using ("idModulo")
  join modulo on modulo.id = "idModulo"
  cross join lateral (select antes.*, "strNombreModulo" as "nombreModulo") as fila_antes
  cross join lateral (select despues.*, "strNombreModulo" as "nombreModulo") as fila_despues
  -- The flags of two records are the same if neither record has a flag that the other lacks.
  where antes.id is null
    or despues.id is null
    or flag_beyond(antes, despues) is not null
    or flag_beyond(despues, antes) is not null;
end
$$;
