-- Returns the rows of the audit by which a user got a permission, by ascending id. The user, the
-- module and the profiles need not exist any more.
--
-- Takes the id of the user, the name of the module, and the name of a flag. A profile holds the
-- permission while it is an administrator's profile, or has the flag on the module that has this
-- name at that time. The rows are:
-- - for each profile by which the user has held the permission, the row by which that profile got
--   it: a change of its records, of its administrator flag, or of the module's name;
-- - each row by which the user got a profile that already held the permission.
--
-- Begins with the tables as they are now, and undoes the rows of the audit from the newest to the
-- oldest. So the answer lacks only the rows that delete_auditoria has removed. The function is
-- `stable`, so it sees the tables and the audit of the same moment. It undoes:
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
  v_row auditoria;
  -- The state before the rows that are undone so far. First the profile of the user, the module
  -- with the name, and the profiles that are administrators'.
  v_perfil integer;
  v_modulo integer;
  v_administradores integer[];
  -- In that state, the records with the flag, as texts `idPerfil.idModulo`, such as '7.16'.
  v_with_flag text[];
  -- In that state, the profiles that hold the permission.
  v_holders integer[] := '{}';
  -- The profiles by which the user has held the permission. The rows by which these profiles got it
  -- are still to be found.
  v_wanted integer[] := '{}';
  v_id integer;
  v_found bigint[] := '{}';
begin
  -- Each profile that the user has had is the present one, or was changed by a row of the user with
  -- the profile in `antes`. So it is with the names of a module.
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
  v_with_flag := array(
    select "idPerfil" || '.' || "idModulo"
    from permisos_perfil
    where "idPerfil" = any(v_perfiles)
      and "idModulo" = any(v_modulos)
      and has_flag(permisos_perfil, p_accion)
  );

  -- Each turn of the loop first uses the state after a row. Then it undoes the row, and finds out
  -- who holds the permission in the state before it.
  for v_row in
    -- An empty row comes first. Nothing is undone for it, and v_holders gets the profiles that hold
    -- the permission now.
    select (null::auditoria).*
    union all
    select *
    from auditoria
    where (
        entidad = 'usuario'
        and "idEntidad" = p_id_usuario
        and (antes ? 'idPerfil' or despues ? 'idPerfil')
      )
      or (entidad = 'modulo' and "idEntidad" = any(v_modulos))
      or (entidad in ('perfil', 'permisos') and "idEntidad" = any(v_perfiles))
    order by id desc nulls first
  loop
    if v_perfil = any(v_holders) then
      if v_perfil <> all(v_wanted) then
        v_wanted := v_wanted || v_perfil;
      end if;
      -- This row gave the user the profile, which already held the permission. So the user got the
      -- permission by it.
      if v_row.entidad = 'usuario' then
        v_found := v_found || v_row.id;
      end if;
    end if;

    -- Undo the row.
    v_id := v_row."idEntidad";
    case v_row.entidad
      when 'usuario' then
        -- In an insertion, `antes` is null.
        v_perfil := (v_row.antes ->> 'idPerfil')::integer;
      when 'modulo' then
        if v_row.antes ->> 'strNombreModulo' = p_modulo then
          v_modulo := v_id;
        elsif v_row.despues ->> 'strNombreModulo' = p_modulo then
          v_modulo := null;
        end if;
      when 'perfil' then
        if (v_row.antes ->> 'bitAdministrador')::boolean then
          v_administradores := v_administradores || v_id;
        elsif (v_row.despues ->> 'bitAdministrador')::boolean then
          v_administradores := array_remove(v_administradores, v_id);
        end if;
      when 'permisos' then
        v_with_flag := array(
          select unnest(v_with_flag)
          except
          select v_id || '.' || (permiso ->> 'idModulo')
          from jsonb_array_elements(v_row.despues -> 'permisos') as permiso
          union
          select v_id || '.' || (permiso ->> 'idModulo')
          from jsonb_array_elements(v_row.antes -> 'permisos') as permiso
          where (permiso ->> p_accion)::boolean
            and (permiso ->> 'idModulo')::integer = any(v_modulos)
        );
      else
        -- The empty row.
    end case;

    v_holders := array(
      select id
      from unnest(v_perfiles) as id
      where id = any(v_administradores) or id || '.' || v_modulo = any(v_with_flag)
    );
    -- A profile that does not hold the permission before this row has got it by this row.
    if not v_wanted <@ v_holders then
      v_found := v_found || v_row.id;
      v_wanted := array(select unnest(v_wanted) intersect select unnest(v_holders));
    end if;
  end loop;

  return query select * from auditoria where id = any(v_found) order by id;
end
$$;
