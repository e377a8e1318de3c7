-- Takes two permission records. Returns true if `p_permiso` has a flag that `p_propio` does not
-- have, and false or null otherwise. A record that does not exist is null, and its flags count as
-- false. A single flag that is null counts as false, too.
create or replace function grants_more(p_permiso permisos_perfil, p_propio permisos_perfil)
returns boolean
language sql immutable
as $$
  select p_permiso."bitAgregar" and p_propio."bitAgregar" is not true
    or p_permiso."bitEditar" and p_propio."bitEditar" is not true
    or p_permiso."bitConsulta" and p_propio."bitConsulta" is not true
    or p_permiso."bitEliminar" and p_propio."bitEliminar" is not true
    or p_permiso."bitDetalle" and p_propio."bitDetalle" is not true;
$$;
