-- Locks the user who writes and the one who is written, in ascending order; before any profile.
create or replace function lock_usuarios(p_actor integer, p_written integer) returns void
language plpgsql
as $$
declare
  v_id integer;
begin
  for v_id in
    select distinct id from unnest(array[p_actor, p_written]) as ids (id)
    where id is not null order by id
  loop
    if v_id = p_written then
      perform from usuario where id = v_id for no key update;
    else
      perform from usuario where id = v_id for share;
    end if;
  end loop;
end
$$;
