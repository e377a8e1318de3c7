-- Takes a permission record and the name of a flag. Returns the value of that flag, or null if
-- there is no flag with this name.
create or replace function has_flag(p_permiso permisos_perfil, p_flag text) returns boolean
language sql immutable
as $$
  select case p_flag
    when 'bitAgregar' then p_permiso."bitAgregar"
    when 'bitEditar' then p_permiso."bitEditar"
    when 'bitConsulta' then p_permiso."bitConsulta"
    when 'bitEliminar' then p_permiso."bitEliminar"
    when 'bitDetalle' then p_permiso."bitDetalle"
  end;
$$;
