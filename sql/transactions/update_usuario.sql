-- Overwrites a user. An unknown id changes nothing. If the password or the image is missing, the
-- stored one stays. A new password and a deactivation end all sessions of the user, by the trigger
-- end_sesiones.
--
-- Takes the id of the user, and a record as insert_usuario does, but `idEstadoUsuario` is required.
-- `p_actor` is described in begin_write.
--
-- Returns {data, imagenAnterior}. `data` is the user, or null if the id is unknown.
-- `imagenAnterior` is the name of the hosted image that a new image replaces, or null. It is
-- missing if the id is unknown.
--
-- Acquires share_usuarios if the name, the email, the profile and the status stay the same, and
-- lock_usuarios otherwise. Writes that hold share_usuarios can run at the same time, unless their
-- row locks conflict (see README.md). Also acquires the locks of begin_write_usuario, and raises
-- what that function raises. Also raises a unique violation if another user has the name or the
-- email.
--
-- The write chooses between share_usuarios and lock_usuarios before it locks the user's row. If
-- another transaction changes the user in between, the write may hold share_usuarios although it
-- changes the name. Then two writes that exchange names can deadlock, and PostgreSQL rolls one of
-- them back. Which of the two locks is held does not matter for permissions.
create or replace function update_usuario(p_id integer, p_usuario jsonb, p_actor jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_is_shared boolean := exists (
    select
    from usuario
    where id = p_id
      and "strNombreUsuario" = p_usuario ->> 'strNombreUsuario'
      and "strCorreo" = p_usuario ->> 'strCorreo'
      and "idPerfil" = (p_usuario ->> 'idPerfil')::integer
      and "idEstadoUsuario" = (p_usuario ->> 'idEstadoUsuario')::boolean
  );
  v_anterior text;
  v_data jsonb;
begin
  if v_is_shared then
    perform share_usuarios();
  else
    perform lock_usuarios();
  end if;

  if not begin_write_usuario(p_id, (p_usuario ->> 'idPerfil')::integer, p_actor) then
    return '{"data": null}';
  end if;
  if not v_is_shared then
    perform refuse_taken_correo(p_id, p_usuario ->> 'strCorreo');
  end if;

  update usuario
  set
    "strNombreUsuario" = nuevo."strNombreUsuario",
    "idPerfil" = nuevo."idPerfil",
    "strCorreo" = nuevo."strCorreo",
    "strNumeroCelular" = nuevo."strNumeroCelular",
    "idEstadoUsuario" = nuevo."idEstadoUsuario",
    "strPwd" = coalesce(nuevo."strPwd", usuario."strPwd"),
    "imagenUrl" = coalesce(nuevo."imagenUrl", usuario."imagenUrl"),
    "imagenPublicId" = coalesce(nuevo."imagenPublicId", usuario."imagenPublicId")
  from
    jsonb_populate_record(null::usuario, p_usuario) as nuevo,
    usuario as antes
  where usuario.id = p_id and antes.id = p_id
  returning antes."imagenPublicId", to_jsonb(usuario) into v_anterior, v_data;
  return jsonb_build_object(
    'data', v_data,
    'imagenAnterior', case when p_usuario ->> 'imagenUrl' is not null then v_anterior end
  );
end
$$;
