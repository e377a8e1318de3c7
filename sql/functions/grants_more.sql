-- Whether a permission record grants an action that the record `p_propio` does not. `p_propio` is
-- null if there is no such record. A flag that is null counts as false.
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
