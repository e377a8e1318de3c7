-- Takes two permission records. Returns the name of the first flag that `p_permiso` has and
-- `p_propio` does not have, or null if there is none. A record that does not exist is null, and its
-- flags count as false.
create or replace function flag_beyond(p_permiso permisos_perfil, p_propio permisos_perfil)
returns text
language sql immutable
as $$
  select case
    when p_permiso."bitAgregar" and p_propio."bitAgregar" is not true then 'bitAgregar'
    when p_permiso."bitEditar" and p_propio."bitEditar" is not true then 'bitEditar'
    when p_permiso."bitConsulta" and p_propio."bitConsulta" is not true then 'bitConsulta'
    when p_permiso."bitEliminar" and p_propio."bitEliminar" is not true then 'bitEliminar'
    when p_permiso."bitDetalle" and p_propio."bitDetalle" is not true then 'bitDetalle'
  end;
$$;
