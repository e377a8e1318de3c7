-- Begins every write that a caller requests. It locks the caller, the caller's profile and the
-- profiles that the write concerns. Then it checks whether the caller may write. The service has
-- checked this at the start of the request, but the caller may have lost the permission since then.
-- Until the transaction of the write ends, nobody can change what begin_write has read.
--
-- Takes in `p_perfiles` the ids of the profiles that the write concerns, in any order. Null
-- elements are ignored. A write of a user concerns the profile that the user has and the profile
-- that the user gets. Any other write concerns the profiles that it changes.
--
-- Takes the caller as `p_actor`, an object with these keys:
-- - `id`: the id of the user.
-- - `ver`: the version of the user's sessions in the caller's token.
-- - `modulo`, `accion`: the permission that the endpoint needs.
-- - `enforced`: whether permissions are checked. It is false with AUTHORIZATION=client, and if the
--   endpoint needs only a session. In the second case a replica of release 0.2.0 sends true, and a
--   JSON null as `modulo`.
-- - `ip`, `idPeticion`: the client's address and the request's id, for the audit.
--
-- Returns:
-- - `perfiles`: the ids from `p_perfiles` for which a profile exists. These profiles are locked.
-- - `limite`: the id of the caller's profile, which limits what the caller may write. It is null if
--   the caller is an administrator, or if `enforced` is false: then nothing limits the write.
--
-- Locks in this order, so that writes do not deadlock:
-- 1. share_usuario for the caller, and then the caller's row with `for share`, so that nobody ends
--    the session or changes the user's profile meanwhile;
-- 2. two advisory locks, by ascending id: a shared one on the caller's profile, and an exclusive
--    one on the first profile of `p_perfiles`, or on the second if the first is null. The exclusive
--    one waits for the writes in progress of all callers who have that profile. Writes that these
--    callers begin later wait for it;
-- 3. the rows of `p_perfiles` with `for no key update`, and that of the caller's profile with
--    `for share`, by ascending id.
-- Foreign-key checks wait for none of these row locks. A later statement reads the permission, so
-- it sees everything that was committed before the locks were granted.
--
-- Until the transaction ends, the audit names this caller.
--
-- Raises LL401 if the session has ended, or if the user is inactive or deleted. Raises LL403 if the
-- caller's profile lacks the permission (see refuse).
create or replace function begin_write(
  p_perfiles integer[],
  p_actor jsonb,
  out perfiles integer[],
  out limite integer
)
language plpgsql
as $$
declare
  v_id integer := (p_actor ->> 'id')::integer;
  v_nombre text;
  v_own integer;
  -- The profile that gets the exclusive lock. If it is null, no profile gets it.
  v_exclusive integer := coalesce(p_perfiles[1], p_perfiles[2]);
  v_perfil record;
begin
  perform share_usuario(v_id);
  select "strNombreUsuario", "idPerfil" into v_nombre, v_own
  from usuario
  where id = v_id
    and "idEstadoUsuario"
    and "versionSesion" = (p_actor ->> 'ver')::integer
  for share;
  if not found then
    raise exception using errcode = 'LL401', message = 'session ended';
  end if;

  -- If the written profile is the caller's own, the exclusive lock comes first. In the other order
  -- two such writes would each hold the shared lock and wait for the other to release it. If
  -- `v_exclusive` is null, neither condition is true.
  if v_exclusive <= v_own then
    perform pg_advisory_xact_lock(73057, v_exclusive);
  end if;
  perform pg_advisory_xact_lock_shared(73057, v_own);
  if v_exclusive > v_own then
    perform pg_advisory_xact_lock(73057, v_exclusive);
  end if;

  -- Three statements lock the rows by ascending id: those of `p_perfiles` up to the caller's
  -- profile, the caller's profile, and the other rows of `p_perfiles`.
  perfiles := array(
    select id from perfil
    where id = any(p_perfiles) and id <= v_own
    order by id
    for no key update
  );
  select "strNombrePerfil", "bitAdministrador" into v_perfil
  from perfil
  where id = v_own
  for share;
  perfiles := perfiles || array(
    select id from perfil
    where id = any(p_perfiles) and id > v_own
    order by id
    for no key update
  );

  perform set_config(
    'llavero.actor',
    row(
      v_id,
      v_nombre,
      v_own,
      v_perfil."strNombrePerfil",
      p_actor ->> 'ip',
      p_actor ->> 'idPeticion'
    )::actor::text,
    true
  );
  if v_perfil."bitAdministrador" or not (p_actor ->> 'enforced')::boolean then
    return;
  end if;
  limite := v_own;

  -- A replica of release 0.2.0 sends a JSON null if the endpoint needs only a session.
  if p_actor -> 'modulo' = 'null' then
    return;
  end if;
  -- Without the key `modulo`, the endpoint is for administrators, and this caller is refused.
  if not exists (
    select
    from permisos_perfil
    join modulo on modulo.id = "idModulo"
    where "idPerfil" = v_own
      and "strNombreModulo" = p_actor ->> 'modulo'
      and has_flag(permisos_perfil, p_actor ->> 'accion')
  ) then
    perform refuse(case
      when p_actor ? 'modulo' then
        jsonb_build_object('modulo', p_actor -> 'modulo', 'accion', p_actor -> 'accion')
      else '{"administrador": true}'
    end);
  end if;
end
$$;
