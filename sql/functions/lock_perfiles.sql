-- Locks the caller's profile and the profiles that the write concerns. begin_write describes which
-- profiles a write concerns.
--
-- Takes in `p_propio` the id of the caller's profile, and in `p_escritos` the ids of the profiles
-- that the write concerns, in any order. Null elements are ignored.
--
-- Returns in `perfiles` the ids from `p_escritos` for which a profile exists. Returns in
-- `es_administrador` whether the caller's profile is an administrator's.
--
-- Locks the caller's profile with `for share` and the others with `for no key update`, so that no
-- other transaction changes their permission records or deletes one of them. The rows are locked by
-- ascending id, so that two writes to the same profiles do not deadlock. Foreign-key checks wait
-- for neither kind of lock.
--
-- Nearly every write concerns one profile. The statements for one profile compare with `=`, so that
-- PostgreSQL keeps their plans (see README.md). For several profiles the function calls
-- lock_varios_perfiles.
create or replace function lock_perfiles(
  p_propio integer,
  p_escritos integer[],
  out perfiles integer[],
  out es_administrador boolean
)
language plpgsql
as $$
declare
  v_escritos integer[] := array_remove(p_escritos, null);
  v_escrito integer := v_escritos[1];
  v_id integer;
  v_locked record;
begin
  -- If any element differs from the first one, the array contains several profiles.
  if v_escrito <> any(v_escritos) then
    v_locked := lock_varios_perfiles(p_propio, v_escritos);
    perfiles := v_locked.perfiles;
    es_administrador := v_locked.es_administrador;
    return;
  end if;

  if v_escrito <= p_propio then
    select id into v_id
    from perfil
    where id = v_escrito
    for no key update;
  end if;

  select "bitAdministrador" into es_administrador
  from perfil
  where id = p_propio
  for share;

  if v_escrito > p_propio then
    select id into v_id
    from perfil
    where id = v_escrito
    for no key update;
  end if;
  perfiles := array_remove(array[v_id], null);
end
$$;
