-- Removes a module with its permission records; without effect when there is none with that id.
-- Returns false for a system module, which stays.
-- `p_actor`: see begin_write; refused when a profile whose records go holds more than the actor's.
create or replace function delete_modulo(p_actor jsonb, p_id integer) returns boolean
language plpgsql
as $$
declare
  v_perfiles integer[];
  v_limit jsonb;
begin
  select perfiles, limite into v_perfiles, v_limit from begin_write_modulo(p_actor, p_id);
  perform refuse_beyond(v_limit, v_perfiles);

  if exists (
    select from modulo where id = p_id and is_modulo_de_sistema("strNombreModulo")
  ) then
    return false;
  end if;
  delete from modulo where id = p_id;
  return true;
end
$$;
