-- Locks the profiles whose permission records are about to be written, and those that the write
-- is decided by, in ascending order, so that two writers never wait for each other. A statement of
-- its own: the next one then sees what the previous holder committed. Foreign-key checks wait for
-- neither kind of lock.
create or replace function lock_perfiles(p_written integer[], p_read integer[]) returns void
language plpgsql
as $$
declare
  v_id integer;
begin
  for v_id in
    select distinct id from unnest(p_written || p_read) as ids (id) where id is not null order by id
  loop
    if v_id = any(p_written) then
      perform from perfil where id = v_id for no key update;
    else
      perform from perfil where id = v_id for share;
    end if;
  end loop;
end
$$;
