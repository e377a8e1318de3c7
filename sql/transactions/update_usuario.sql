-- Overwrites a user. If the password or the image is missing, the stored one stays. A new password
-- ends all sessions of the user.
--
-- `p_usuario`: as in insert_usuario, but `idEstadoUsuario` is required. Returns {data: the user,
-- null if unknown; imagenAnterior: the hosted image that a new one replaces, or null}. Raises what
-- insert_usuario raises.
create or replace function update_usuario(p_id integer, p_usuario jsonb, p_actor jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_anterior text;
  v_data jsonb;
begin
  if not begin_write_usuario(p_id, (p_usuario ->> 'idPerfil')::integer, p_actor) then
    return jsonb_build_object('data', null);
  end if;

  if p_usuario ->> 'imagenUrl' is not null then
    select "imagenPublicId" into v_anterior from usuario where id = p_id;
  end if;

  update usuario
  set
    "strNombreUsuario" = nuevo."strNombreUsuario",
    "idPerfil" = nuevo."idPerfil",
    "strCorreo" = nuevo."strCorreo",
    "strNumeroCelular" = nuevo."strNumeroCelular",
    "idEstadoUsuario" = nuevo."idEstadoUsuario",
    "strPwd" = coalesce(nuevo."strPwd", usuario."strPwd"),
    "versionSesion" = usuario."versionSesion" + (nuevo."strPwd" is not null)::integer,
    "imagenUrl" = coalesce(nuevo."imagenUrl", usuario."imagenUrl"),
    "imagenPublicId" = coalesce(nuevo."imagenPublicId", usuario."imagenPublicId")
  from jsonb_populate_record(null::usuario, p_usuario) as nuevo
  where usuario.id = p_id
  returning usuario_data(usuario) into v_data;
  return jsonb_build_object('data', v_data, 'imagenAnterior', v_anterior);
end
$$;
