-- A restore of data alone, with its triggers on: pg_restore runs them without a search path.
alter function permisos_inserted() set search_path from current;
alter function permisos_deleted() set search_path from current;
alter function permisos_updated() set search_path from current;
alter function permisos_truncated() set search_path from current;
alter function modulo_renamed() set search_path from current;

-- The profiles come with the number of their records; then come the records, which are counted.
create function perfil_inserted() returns trigger
language plpgsql
as $$
begin
  new."numPermisos" := 0;
  return new;
end
$$;
create trigger perfil_inserted before insert on perfil
  for each row execute function perfil_inserted();

-- Functions of sql/transactions that are gone, or have come back from sql/functions as others.
drop function if exists
  begin_write(jsonb, integer[], integer[]), begin_write_modulo(jsonb, integer),
  begin_write_permiso(jsonb, integer, integer), begin_write_usuario(jsonb, integer, integer),
  check_permiso(
    jsonb, integer[], integer, integer, boolean, boolean, boolean, boolean, boolean
  ),
  lock_perfiles(integer[], integer[]), lock_usuarios(integer, integer),
  perfiles_of_modulo(integer);
