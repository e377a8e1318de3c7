-- Returns the rows of the audit by which a user got a permission, by ascending id. The user, the
-- module and the profiles need not exist any more.
--
-- Takes the id of the user, the name of the module, and the name of a flag. A profile holds the
-- permission while it is an administrator's profile, or has the flag on the module that has this name
-- at that time. The rows are:
-- - for each profile by which the user has held the permission, the row by which that profile got
--   it: a change of its records, of its administrator flag, or of the module's name;
-- - each row by which the user got a profile that already held the permission.
--
-- Begins with the tables as they are now, and undoes the rows of the audit from the newest to the
-- oldest. So the answer lacks only the rows that delete_auditoria has removed. The function is `stable`,
-- so it sees the tables and the audit of the same moment. It undoes:
-- - the rows about the user that change the profile;
-- - all rows about a profile that the user has had;
-- - all rows about a module that has had the name.
create or replace function origen_de_permiso(p_id_usuario integer, p_modulo text, p_accion text)
returns setof auditoria
language plpgsql stable
as $$
declare
  -- The profiles that the user has had, and the modules that have had the name.
  v_perfiles integer[];
  v_modulos integer[];
  v_fila auditoria;
  -- The state before the rows that are undone so far. First the profile of the user, the module with
  -- the name, and the profiles that are administrators'.
  v_perfil integer;
  v_modulo integer;
  v_administradores integer[];
  -- In that state, the records with the flag, as texts `idPerfil.idModulo`, such as '7.16'.
  v_con_permiso text[];
  -- In that state, the profiles that hold the permission.
  v_titulares integer[] := '{}';
  -- The profiles by which the user has held the permission. The rows by which these profiles got it
  -- are still to be found.
  v_buscados integer[] := '{}';
  v_id integer;
  v_filas bigint[] := '{}';
begin
  -- Each profile that the user has had is the present one, or was changed by a row of the user with the
  -- profile in `antes`. So it is with the names of a module.
  select "idPerfil" into v_perfil from usuario where id = p_id_usuario;
  v_perfiles := array(
    select v_perfil
    union
    select (antes ->> 'idPerfil')::integer
    from auditoria
    where entidad = 'usuario' and "idEntidad" = p_id_usuario
  );
  select id into v_modulo from modulo where "strNombreModulo" = p_modulo;
  v_modulos := array(
    select v_modulo
    union
    select "idEntidad"
    from auditoria
    where entidad = 'modulo' and antes ->> 'strNombreModulo' = p_modulo
  );
  v_administradores := array(select id from perfil where "bitAdministrador");
  v_con_permiso := array(
    select "idPerfil" || '.' || "idModulo"
    from permisos_perfil
    where "idPerfil" = any(v_perfiles)
      and "idModulo" = any(v_modulos)
      and has_flag(permisos_perfil, p_accion)
  );

  for v_fila in
    -- An empty row comes first. Nothing is undone for it, and v_titulares gets the profiles that hold
    -- the permission now.
    select (null::auditoria).*
    union all
    select *
    from auditoria
    where entidad = 'usuario'
        and "idEntidad" = p_id_usuario
        and (antes ? 'idPerfil' or despues ? 'idPerfil')
      or entidad = 'modulo' and "idEntidad" = any(v_modulos)
      or entidad in ('perfil', 'permisos') and "idEntidad" = any(v_perfiles)
    order by id desc nulls first
  loop
    -- v_perfil and v_titulares still describe the state after this row.
    if v_perfil = any(v_titulares) then
      if v_perfil <> all(v_buscados) then
        v_buscados := v_buscados || v_perfil;
      end if;
      -- This row gave the user the profile, which already held the permission. So the user got the
      -- permission by it.
      if v_fila.entidad = 'usuario' then
        v_filas := v_filas || v_fila.id;
      end if;
    end if;

    -- Undo the row.
    v_id := v_fila."idEntidad";
    case v_fila.entidad
      when 'usuario' then
        -- In an insertion, `antes` is null.
        v_perfil := (v_fila.antes ->> 'idPerfil')::integer;
      when 'modulo' then
        if v_fila.antes ->> 'strNombreModulo' = p_modulo then
          v_modulo := v_id;
        elsif v_fila.despues ->> 'strNombreModulo' = p_modulo then
          v_modulo := null;
        end if;
      when 'perfil' then
        if (v_fila.antes ->> 'bitAdministrador')::boolean then
          v_administradores := v_administradores || v_id;
        elsif (v_fila.despues ->> 'bitAdministrador')::boolean then
          v_administradores := array_remove(v_administradores, v_id);
        end if;
      when 'permisos' then
        v_con_permiso := array(
          select unnest(v_con_permiso)
          except
          select v_id || '.' || (permiso ->> 'idModulo')
          from jsonb_array_elements(v_fila.despues -> 'permisos') as permiso
          union
          select v_id || '.' || (permiso ->> 'idModulo')
          from jsonb_array_elements(v_fila.antes -> 'permisos') as permiso
          where (permiso ->> p_accion)::boolean
            and (permiso ->> 'idModulo')::integer = any(v_modulos)
        );
      else
        -- The empty row.
    end case;

    v_titulares := array(
      select id
      from unnest(v_perfiles) as id
      where id = any(v_administradores) or id || '.' || v_modulo = any(v_con_permiso)
    );
    -- A profile that does not hold the permission before this row has got it by this row.
    if not v_buscados <@ v_titulares then
      v_filas := v_filas || v_fila.id;
      v_buscados := array(select unnest(v_buscados) intersect select unnest(v_titulares));
    end if;
  end loop;

  return query select * from auditoria where id = any(v_filas) order by id;
end
$$;
