-- Removes a profile with its permission records; without effect when there is none with that id.
-- `p_actor`: see begin_write; refused when the profile holds more than the actor's.
create or replace function delete_perfil(p_actor jsonb, p_id integer) returns void
language plpgsql
as $$
begin
  perform refuse_beyond(begin_write(p_actor, array[p_id]), array[p_id]);

  delete from perfil where id = p_id;
end
$$;
