-- Adds one permission record with all flags for each module to a profile that has no records.
create or replace function grant_all_modulos(p_id_perfil integer) returns void
language sql
as $$
  select renew_plans(count(*)) from modulo;

  insert into permisos_perfil
    ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle")
  select p_id_perfil, id, true, true, true, true, true
  from modulo;
$$;
