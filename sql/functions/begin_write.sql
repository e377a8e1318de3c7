-- Starts every write: locks the user who writes, the user's own profile and the profiles to be
-- written, and decides once more, now that nothing can change, whether the user may.
-- Gives those of `p_perfiles` that it has locked: no other exists for this write, whatever a later
-- statement may find by its id. And the limit that the write must stay within: what the own profile
-- holds, null (no limit) for an administrator and where the client decides.
-- `p_actor`: {id, ver, modulo, accion, enforced}, the session as it was first looked at.
--
-- Writers never wait for each other in a circle, as all lock in one order: advisory locks, modules,
-- users, profiles by ascending id. The advisory locks, in their order: 73055 with an id (one record),
-- 7305511403 (the first administrator), 7305511404 (users), 7305511405 (names of modules),
-- 7305511406 (modules: shared to write records, alone to rename or delete one).
create or replace function begin_write(
  p_actor jsonb, p_perfiles integer[], out perfiles integer[], out limite jsonb
)
language plpgsql
as $$
declare
  v_propio integer;
begin
  select "idPerfil" into v_propio
  from usuario
  where id = (p_actor ->> 'id')::integer and "idEstadoUsuario"
    and "versionSesion" = (p_actor ->> 'ver')::integer
  for share;
  if not found then
    raise exception using errcode = 'LL401', message = 'session ended';
  end if;

  perfiles := lock_perfiles(p_perfiles, v_propio);
  if not (p_actor ->> 'enforced')::boolean then
    return;
  end if;
  limite := held_by(v_propio);
  if limite ? 'administrador' then
    limite := null;
  elsif not exists (
    select from modulo
    where "strNombreModulo" = p_actor ->> 'modulo' and limite -> id::text ? (p_actor ->> 'accion')
  ) then
    perform refuse();
  end if;
end
$$;
