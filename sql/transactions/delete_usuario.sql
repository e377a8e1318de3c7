-- Removes a user. An unknown id changes nothing.
--
-- Takes the id of the user. Returns {imagenAnterior}. `imagenAnterior` is the name of the hosted
-- image that the user had, or null.
create or replace function delete_usuario(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_imagen_anterior text;
begin
  if begin_write_usuario(p_id, null, p_actor) then
    delete from usuario
    where id = p_id
    returning "imagenPublicId" into v_imagen_anterior;
  end if;
  return jsonb_build_object('imagenAnterior', v_imagen_anterior);
end
$$;
