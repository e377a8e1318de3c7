-- Refuses the write when a record to be written, one of the entries of replace_permisos, grants what
-- the limit (see begin_write) does not hold.
create or replace function refuse_granting(p_limit jsonb, p_permisos jsonb) returns void
language plpgsql
as $$
begin
  if p_limit is not null and exists (
    select
    from jsonb_array_elements(p_permisos) as permisos (permiso)
    cross join unnest(
      array['bitAgregar', 'bitEditar', 'bitConsulta', 'bitEliminar', 'bitDetalle']
    ) as flags (flag)
    where (permiso ->> flag)::boolean
      and not coalesce(p_limit -> (permiso ->> 'idModulo') ? flag, false)
  ) then
    perform refuse();
  end if;
end
$$;
