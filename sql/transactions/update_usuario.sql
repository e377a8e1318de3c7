-- Overwrites a user. An unknown id changes nothing. If the password or the image is missing, the
-- stored one stays. A new password and a deactivation end all sessions of the user, by the trigger
-- prepare_usuario.
--
-- Takes the id of the user, and a record as insert_usuario does, but `idEstadoUsuario` is required.
--
-- Returns {data, imagenAnterior}. `data` is the user, or null if the id is unknown.
-- `imagenAnterior` is the name of the hosted image that a new image replaces, or null.
--
-- Raises a unique violation if another user has the name or the email.
create or replace function update_usuario(p_id integer, p_usuario jsonb, p_actor jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_imagen_anterior text;
  v_data jsonb;
begin
  if begin_write_usuario(p_id, (p_usuario ->> 'idPerfil')::integer, p_actor) then
    if p_usuario ->> 'imagenUrl' is not null then
      select "imagenPublicId" into v_imagen_anterior from usuario where id = p_id;
    end if;

    update usuario
    set
      "strNombreUsuario" = p_usuario ->> 'strNombreUsuario',
      "idPerfil" = (p_usuario ->> 'idPerfil')::integer,
      "strCorreo" = p_usuario ->> 'strCorreo',
      "strNumeroCelular" = p_usuario ->> 'strNumeroCelular',
      "idEstadoUsuario" = (p_usuario ->> 'idEstadoUsuario')::boolean,
      "strPwd" = coalesce(p_usuario ->> 'strPwd', "strPwd"),
      "imagenUrl" = coalesce(p_usuario ->> 'imagenUrl', "imagenUrl"),
      "imagenPublicId" = coalesce(p_usuario ->> 'imagenPublicId', "imagenPublicId")
    where id = p_id
    returning to_jsonb(usuario) into v_data;
  end if;
  return jsonb_build_object('data', v_data, 'imagenAnterior', v_imagen_anterior);
end
$$;
