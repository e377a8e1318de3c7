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
begin
  perfiles := '{}';

  if p_propio >= any(v_escritos) then
    perfiles := array(
      select id from perfil
      where id = any(v_escritos) and id <= p_propio
      order by id
      for no key update
    );
  end if;

  select "bitAdministrador" into es_administrador
  from perfil
  where id = p_propio
  for share;

  if p_propio < any(v_escritos) then
    perfiles := perfiles || array(
      select id from perfil
      where id = any(v_escritos) and id > p_propio
      order by id
      for no key update
    );
  end if;
end
$$;
