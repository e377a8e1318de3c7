-- Gives a profile one permission record per module, with every flag. The profile must have none.
create or replace function grant_all_modulos(p_id_perfil integer) returns void
language sql
as $$
  insert into permisos_perfil
    ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle")
  select p_id_perfil, id, true, true, true, true, true
  from modulo;
$$;
