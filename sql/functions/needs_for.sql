-- Takes the id of a profile, and the id of the profile that limits the caller (`limite` of
-- begin_write). Returns the first thing that `p_id_perfil` holds and `p_limite` does not hold, in
-- the form that refuse takes. This is the administrator flag, or else the permission for the module
-- with the lowest id. Returns null if there is nothing, and also if `p_limite` is null: then the
-- caller has no limit. A write must have locked both profiles.
--
-- The query reads the first element of an aggregate. With `limit 1` instead, PostgreSQL would scan
-- the whole table if it has no statistics.
create or replace function needs_for(p_id_perfil integer, p_limite integer) returns jsonb
language plpgsql stable strict
as $$
begin
  if p_id_perfil = p_limite then
    return null;
  end if;
  if exists (select from perfil where id = p_id_perfil and "bitAdministrador") then
    return jsonb_build_object('administrador', true, 'perfil', p_id_perfil);
  end if;

  return (
    select (array_agg(
      jsonb_build_object(
        'modulo', (select "strNombreModulo" from modulo where id = other."idModulo"),
        'accion', flag_beyond(other, own),
        'perfil', p_id_perfil
      )
      order by other."idModulo"
    ))[1]
    from permisos_perfil as other
    left join permisos_perfil as own
      on own."idPerfil" = p_limite and own."idModulo" = other."idModulo"
    where other."idPerfil" = p_id_perfil and flag_beyond(other, own) is not null
  );
end
$$;
