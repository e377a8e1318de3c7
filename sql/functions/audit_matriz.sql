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
declare
  v_antes permisos_perfil[];
  v_despues permisos_perfil[];
begin
  -- Flags are the same if neither record has one beyond the other.
  select
    array_agg(antes) filter (where antes.id is not null),
    array_agg(despues) filter (where despues.id is not null)
  into v_antes, v_despues
  from unnest(p_antes) as antes
  full join unnest(p_despues) as despues using ("idModulo")
  where antes.id is null
    or despues.id is null
    or coalesce(flag_beyond(antes, despues), flag_beyond(despues, antes)) is not null;

  perform audit(
    'update',
    'permisos',
    p_id_perfil,
    (select "strNombrePerfil" from perfil where id = p_id_perfil),
    audited_permisos(coalesce(v_antes, '{}')),
    audited_permisos(coalesce(v_despues, '{}')) || jsonb_build_object(
      'ids', array(select id from unnest(p_despues) order by "idModulo")
    )
  );
end
$$;
