-- Locks the profiles to be written and the writer's own, which is only read, in ascending order.
-- Gives those to be written that are there. Foreign-key checks wait for neither kind of lock.
create or replace function lock_perfiles(p_written integer[], p_own integer) returns integer[]
language plpgsql
as $$
declare
  v_locked integer[];
begin
  v_locked := array(
    select id from perfil where id = any(p_written) and id <= p_own order by id for no key update
  );
  perform from perfil where id = p_own for share;
  return v_locked || array(
    select id from perfil where id = any(p_written) and id > p_own order by id for no key update
  );
end
$$;
