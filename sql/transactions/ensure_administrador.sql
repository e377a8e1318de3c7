-- While no active user has an administrator profile: makes the named user one, with this password,
-- and creates the profile and the user where they are missing. Returns whether it did.
create or replace function ensure_administrador(p_nombre text, p_hash text, p_correo text)
returns boolean
language plpgsql
as $$
declare
  v_usuario integer;
  v_perfil integer;
begin
  -- Replicas that start together decide one after the other, and no user is written meanwhile.
  perform pg_advisory_xact_lock(7305511403);
  perform pg_advisory_xact_lock(7305511404);

  if exists (
    select from usuario join perfil on perfil.id = "idPerfil"
    where "idEstadoUsuario" and "bitAdministrador"
  ) then
    return false;
  end if;

  -- An existing user keeps the email there is, but the one given must not be another's even so.
  if exists (
    select from usuario
    where fold_case("strCorreo") = fold_case(p_correo) and "strNombreUsuario" <> p_nombre
  ) then
    raise exception using errcode = 'unique_violation', constraint = 'usuario_correo_unico';
  end if;

  -- Modules, users and profiles in the order of begin_write.
  perform pg_advisory_xact_lock_shared(7305511406);
  select id into v_usuario from usuario where "strNombreUsuario" = p_nombre for no key update;
  -- By its flag and never by its name, which anybody who may edit profiles can give to one.
  select id into v_perfil from perfil where "bitAdministrador" order by id limit 1 for no key update;
  if not found then
    insert into perfil ("strNombrePerfil", "bitAdministrador") values ('ADMINISTRADOR', true)
    returning id into v_perfil;
    perform grant_all_modulos(v_perfil);
  end if;

  update usuario
  set "idPerfil" = v_perfil, "strPwd" = p_hash, "idEstadoUsuario" = true,
    "versionSesion" = "versionSesion" + 1
  where id = v_usuario;
  if not found then
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    values (p_nombre, v_perfil, p_hash, p_correo);
  end if;
  return true;
end
$$;
