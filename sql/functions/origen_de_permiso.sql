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
-- Reads the rows of the audit by ascending id: of the user, those by which the user got a profile or
-- was deleted; of the user's profiles and of the modules that have had the name, all. Rows that
-- delete_auditoria has removed are missing.
create or replace function origen_de_permiso(p_id_usuario integer, p_modulo text, p_accion text)
returns setof auditoria
language plpgsql stable
as $$
declare
  -- The profiles that the user has had, and the modules that have had the name.
  v_perfiles integer[];
  v_modulos integer[];
  v_fila auditoria;
  -- The profile that the user has, and the module that has the name, after the rows so far.
  v_perfil integer;
  v_modulo integer;
  -- The ids of the administrators' profiles.
  v_administradores integer[] := '{}';
  -- The records with the flag, as texts `idPerfil.idModulo`, such as '7.16'.
  v_con_permiso text[] := '{}';
  -- By the id of each profile that holds the permission: the id of the row by which it got it.
  v_origen jsonb := '{}';
  v_id integer;
  v_filas bigint[] := '{}';
begin
  select array_agg(distinct (despues ->> 'idPerfil')::integer) into v_perfiles
  from auditoria
  where entidad = 'usuario' and "idEntidad" = p_id_usuario and despues ? 'idPerfil';
  select array_agg(distinct "idEntidad") into v_modulos
  from auditoria
  where entidad = 'modulo' and despues ->> 'strNombreModulo' = p_modulo;

  for v_fila in
    select *
    from auditoria
    where entidad = 'usuario'
        and "idEntidad" = p_id_usuario
        and (accion = 'delete' or despues ? 'idPerfil')
      or entidad = 'modulo' and "idEntidad" = any(v_modulos)
      or entidad in ('perfil', 'permisos') and "idEntidad" = any(v_perfiles)
    order by id
  loop
    v_id := v_fila."idEntidad";
    case v_fila.entidad
      when 'usuario' then
        -- In a deletion, `despues` is null.
        v_perfil := (v_fila.despues ->> 'idPerfil')::integer;
      when 'modulo' then
        if v_fila.despues ->> 'strNombreModulo' = p_modulo then
          v_modulo := v_id;
        elsif v_fila.antes ->> 'strNombreModulo' = p_modulo then
          v_modulo := null;
        end if;
      when 'perfil' then
        if (v_fila.despues ->> 'bitAdministrador')::boolean then
          v_administradores := v_administradores || v_id;
        elsif (v_fila.antes ->> 'bitAdministrador')::boolean then
          v_administradores := array_remove(v_administradores, v_id);
        end if;
      when 'permisos' then
        v_con_permiso := array(
          select unnest(v_con_permiso)
          except
          select v_id || '.' || (permiso ->> 'idModulo')
          from jsonb_array_elements(v_fila.antes -> 'permisos') as permiso
          union
          select v_id || '.' || (permiso ->> 'idModulo')
          from jsonb_array_elements(v_fila.despues -> 'permisos') as permiso
          where (permiso ->> p_accion)::boolean
            and (permiso ->> 'idModulo')::integer = any(v_modulos)
        );
    end case;

    -- Find the profiles that hold the permission after this row. A profile that did not hold it before
    -- has got it by this row. Every other one keeps the row by which it got it.
    select coalesce(jsonb_object_agg(id, coalesce(v_origen -> id::text, to_jsonb(v_fila.id))), '{}')
    into v_origen
    from unnest(v_perfiles) as id
    where id = any(v_administradores) or id || '.' || v_modulo = any(v_con_permiso);

    if v_origen ? v_perfil::text then
      v_filas := v_filas || (v_origen ->> v_perfil::text)::bigint;
      -- A row of the user gives the profile no permission, so the profile had it before.
      if v_fila.entidad = 'usuario' then
        v_filas := v_filas || v_fila.id;
      end if;
    end if;
  end loop;

  return query select * from auditoria where id = any(v_filas) order by id;
end
$$;
