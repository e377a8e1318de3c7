-- Takes two permission records. Returns the names of the flags that are true in `p_permiso` but not
-- in `p_otro`, as an array that may be empty. A record that does not exist is null, and its flags
-- count as false.
create or replace function flags_beyond(p_permiso permisos_perfil, p_otro permisos_perfil)
returns text[]
language sql immutable
as $$
  select array_remove(array[
    case when p_permiso."bitAgregar" and p_otro."bitAgregar" is not true then 'bitAgregar' end,
    case when p_permiso."bitEditar" and p_otro."bitEditar" is not true then 'bitEditar' end,
    case when p_permiso."bitConsulta" and p_otro."bitConsulta" is not true then 'bitConsulta' end,
    case when p_permiso."bitEliminar" and p_otro."bitEliminar" is not true then 'bitEliminar' end,
    case when p_permiso."bitDetalle" and p_otro."bitDetalle" is not true then 'bitDetalle' end
  ], null);
$$;
