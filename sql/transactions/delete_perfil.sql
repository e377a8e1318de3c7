-- Removes a profile with its permission records; without effect when there is none with that id.
-- `p_actor`: see begin_write; refused when the profile holds more than the actor's.
create or replace function delete_perfil(p_actor jsonb, p_id integer) returns void
language plpgsql
as $$
declare
  v_perfiles integer[];
  v_limit jsonb;
begin
  select * into v_perfiles, v_limit from begin_write(p_actor, array[p_id]);
  perform refuse_beyond(v_limit, v_perfiles);

  delete from perfil where id = any(v_perfiles);
end
$$;
