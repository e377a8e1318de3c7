-- Removes a user and returns the name of the hosted image, null where there is none or no user.
-- `p_actor`: see begin_write_usuario.
create or replace function delete_usuario(p_actor jsonb, p_id integer) returns text
language plpgsql
as $$
declare
  v_public_id text;
begin
  if begin_write_usuario(p_actor, p_id, null) then
    delete from usuario where id = p_id returning "imagenPublicId" into v_public_id;
  end if;
  return v_public_id;
end
$$;
