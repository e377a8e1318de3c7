-- Gives a profile that has no permission records one per module, with every flag.
-- The modules are locked while they are read: one that is being deleted is left out.
create or replace function grant_all_modulos(p_id_perfil integer) returns void
language sql
as $$
  insert into permisos_perfil
    ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle")
  select p_id_perfil, existente.id, true, true, true, true, true
  from (select id from modulo order by id for key share) as existente;
$$;
