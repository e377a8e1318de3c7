-- What a profile holds, so that `a @> b` says that `a` holds all that `b` does:
-- {"<idModulo>": {"<flag>": true, …}, …}, and for an administrator a key that no other has.
create or replace function held_by(p_id_perfil integer) returns jsonb
language sql stable
as $$
  select case when perfil."bitAdministrador" then '{"administrador": true}' else '{}'::jsonb end
    || coalesce(
      (
        select jsonb_object_agg("idModulo", jsonb_strip_nulls(jsonb_build_object(
          'bitAgregar', nullif("bitAgregar", false), 'bitEditar', nullif("bitEditar", false),
          'bitConsulta', nullif("bitConsulta", false), 'bitEliminar', nullif("bitEliminar", false),
          'bitDetalle', nullif("bitDetalle", false)
        )))
        from permisos_perfil
        where "idPerfil" = p_id_perfil
          and ("bitAgregar" or "bitEditar" or "bitConsulta" or "bitEliminar" or "bitDetalle")
      ),
      '{}'
    )
  from perfil
  where id = p_id_perfil;
$$;
