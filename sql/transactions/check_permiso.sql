-- What comes before one permission record is written, in the order in which it is told: its profile
-- and its module exist (else the violation that the write itself would be), and nothing is beyond the
-- limit (see begin_write), neither what the profiles concerned hold nor what the record grants.
create or replace function check_permiso(
  p_limit jsonb, p_perfiles integer[], p_id_perfil integer, p_id_modulo integer, p_agregar boolean,
  p_editar boolean, p_consulta boolean, p_eliminar boolean, p_detalle boolean
) returns void
language plpgsql
as $$
begin
  if not exists (select from perfil where id = p_id_perfil) then
    raise foreign_key_violation using constraint = 'permisos_perfil_perfil_fk';
  end if;
  if not exists (select from modulo where id = p_id_modulo) then
    raise foreign_key_violation using constraint = 'permisos_perfil_modulo_fk';
  end if;

  perform refuse_beyond(p_limit, p_perfiles);
  perform refuse_granting(p_limit, jsonb_build_array(jsonb_build_object(
    'idModulo', p_id_modulo, 'bitAgregar', p_agregar, 'bitEditar', p_editar,
    'bitConsulta', p_consulta, 'bitEliminar', p_eliminar, 'bitDetalle', p_detalle
  )));
end
$$;
