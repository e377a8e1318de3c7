-- Gives a profile that has no permission records one per module, with every flag.
create or replace function grant_all_modulos(p_id_perfil integer) returns void
language sql
as $$
  insert into permisos_perfil
    ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle")
  select p_id_perfil, id, true, true, true, true, true
  from modulo;
$$;
