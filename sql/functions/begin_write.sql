-- Starts every write. It locks the caller, the caller's profile and the profiles that the write is to
-- change. Nothing of these can change any more, so it then decides once more whether the caller may
-- write. Each decision is a statement of its own: a statement sees what was committed before it began.
--
-- `p_perfiles`: the ids of the profiles to be changed; null elements count for nothing.
-- `p_actor`: the caller as the session was read, {id, ver, modulo, accion, enforced}. `modulo` and
-- `accion` are the permission that the endpoint needs, JSON null where any session will do.
--
-- Returns in `perfiles` those of `p_perfiles` that exist. They are locked; for this write there are no
-- others, even if a later statement finds one by its id.
-- Returns in `limite` the profile that limits the write: the caller's own. It is null, which means no
-- limit, for an administrator and where the client decides (AUTHORIZATION=client).
-- Raises LL401 when the session has ended, and LL403 when the caller lacks the permission.
create or replace function begin_write(
  p_perfiles integer[], p_actor jsonb, out perfiles integer[], out limite integer
)
language plpgsql
as $$
declare
  v_propio integer;
  v_locked record;
begin
  select "idPerfil" into v_propio
  from usuario
  where id = (p_actor ->> 'id')::integer
    and "idEstadoUsuario"
    and "versionSesion" = (p_actor ->> 'ver')::integer
  for share;
  if not found then
    raise exception using errcode = 'LL401', message = 'session ended';
  end if;

  v_locked := lock_perfiles(v_propio, p_perfiles);
  perfiles := v_locked.perfiles;
  if v_locked.es_administrador or not (p_actor ->> 'enforced')::boolean then
    return;
  end if;

  limite := v_propio;
  if p_actor -> 'modulo' = 'null' then
    return;
  end if;
  if not exists (
    select from permisos_perfil
    join modulo on modulo.id = "idModulo"
    where "idPerfil" = v_propio
      and "strNombreModulo" = p_actor ->> 'modulo'
      and case p_actor ->> 'accion'
        when 'bitAgregar' then "bitAgregar"
        when 'bitEditar' then "bitEditar"
        when 'bitConsulta' then "bitConsulta"
        when 'bitEliminar' then "bitEliminar"
        when 'bitDetalle' then "bitDetalle"
      end
  ) then
    perform refuse();
  end if;
end
$$;
