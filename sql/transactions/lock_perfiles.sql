-- Every write of permission records calls this first, as a statement of its own: the next
-- statement then sees what the previous holder committed. Ascending, so that two writers never
-- wait for each other; `no key update`, so that foreign-key checks do not wait at all.
create or replace function lock_perfiles(p_ids integer[]) returns void
language plpgsql
as $$
begin
  perform from perfil where id = any(p_ids) order by id for no key update;
end
$$;
