-- Sets up an administrator if there is no active one, and changes nothing otherwise. The named user
-- becomes an active administrator with the given password. The user is added if the name is
-- unknown. The profile ADMINISTRADOR is added if there is no administrator's profile. The service
-- calls this function when it starts, so there is no caller.
--
-- Takes {strNombreUsuario, strPwd, strCorreo}; `strPwd` is the hash. A user who exists already
-- keeps the stored email.
--
-- Returns {ensured}, which is false if there is an active administrator. In the audit, the name of
-- the caller is `ADMIN_*`.
--
-- Acquires lock_modulos, because several replicas may start together, and because a new profile
-- gets a record for each module. Then locks the user and the profile.
--
-- Raises a unique violation if another user has the email, or has the name in different upper or
-- lower case. Another transaction may also take the name or the email while the user is being
-- added.
create or replace function ensure_administrador(p_usuario jsonb) returns jsonb
language plpgsql
as $$
declare
  v_actor actor;
  v_nombre text := p_usuario ->> 'strNombreUsuario';
  v_hash text := p_usuario ->> 'strPwd';
  v_correo text := p_usuario ->> 'strCorreo';
  v_id_usuario integer;
  v_id_perfil integer;
begin
  perform lock_modulos();

  if exists (
    select
    from usuario
    join perfil on perfil.id = "idPerfil"
    where "idEstadoUsuario" and "bitAdministrador"
  ) then
    return '{"ensured": false}';
  end if;

  v_actor."strNombreUsuario" := 'ADMIN_*';
  perform set_config('llavero.actor', v_actor::text, true);
  select id into v_id_usuario
  from usuario
  where "strNombreUsuario" = v_nombre
  for no key update;
  perform refuse_taken_correo(v_id_usuario, v_correo);

  -- The profile is found by its flag and not by its name. Otherwise any caller who may add profiles
  -- could add one with the name ADMINISTRADOR, and the user would get its permissions.
  select id into v_id_perfil
  from perfil
  where "bitAdministrador"
  order by id
  limit 1
  for no key update;
  if not found then
    insert into perfil ("strNombrePerfil", "bitAdministrador")
    values ('ADMINISTRADOR', true)
    returning id into v_id_perfil;
    perform grant_all_modulos(v_id_perfil);
  end if;

  if v_id_usuario is null then
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    values (v_nombre, v_id_perfil, v_hash, v_correo);
  else
    update usuario
    set
      "idPerfil" = v_id_perfil,
      "strPwd" = v_hash,
      "idEstadoUsuario" = true
    where id = v_id_usuario;
  end if;

  return '{"ensured": true}';
end
$$;
