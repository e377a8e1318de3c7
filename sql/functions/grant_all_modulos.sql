-- Takes the id of a profile that has no permission records. Adds to it one record for each module,
-- with all flags.
--
-- Acquires no locks. The transaction must hold share_modulos, and must have locked the profile or
-- added it.
create or replace function grant_all_modulos(p_id_perfil integer) returns void
language sql
as $$
  insert into permisos_perfil (
    "idPerfil",
    "idModulo",
    "bitAgregar",
    "bitEditar",
    "bitConsulta",
    "bitEliminar",
    "bitDetalle"
  )
  select p_id_perfil, id, true, true, true, true, true
  from modulo;
$$;
