-- Starts every write: locks the caller, the caller's profile and the profiles that the write
-- changes, and then decides once more whether the caller may write. From here on nobody else can
-- change what the decision depends on. Locks and decisions are statements of their own, because a
-- statement sees only what was committed before it began.
--
-- `p_perfiles`: the ids of the profiles that the write changes; null elements are ignored.
-- `p_actor`: the caller as found at the start of the request, {id, ver, modulo, accion, enforced}.
-- `modulo` and `accion` are the permission that the endpoint needs, JSON null if any session will
-- do. `enforced` is false with AUTHORIZATION=client.
--
-- Returns in `perfiles` those of `p_perfiles` that exist, locked. A profile that is not among them
-- does not exist for this write, even if a later statement finds it. Returns in `limite` the
-- profile that limits the write, which is the caller's. `limite` is null, and the write has no
-- limit, for an administrator and with AUTHORIZATION=client. Raises LL401 when the session has
-- ended, and LL403 when the caller lacks the permission.
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
