-- Removes a user. An unknown id changes nothing. Returns {imagenAnterior: the hosted image that the
-- user had, or null; changes}. Raises what begin_write_usuario raises.
create or replace function delete_usuario(p_id integer, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_antes jsonb;
  v_anterior text;
begin
  perform lock_usuarios();
  if begin_write_usuario(p_id, null, p_actor) then
    delete from usuario
    where id = p_id
    returning usuario_data(usuario), "imagenPublicId" into v_antes, v_anterior;
  end if;
  return jsonb_build_object(
    'imagenAnterior', v_anterior,
    'changes', usuario_changes(v_antes, null)
  );
end
$$;
