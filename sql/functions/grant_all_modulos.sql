-- Takes the id of a profile that has no permission records. Adds to it one record for each module,
-- with all flags.
--
-- The transaction must hold share_modulos or lock_modulos, and must have locked or added the
-- profile.
create or replace function grant_all_modulos(p_id_perfil integer) returns void
language sql
as $$
  select renew_plans(count(*)) from modulo;

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
