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
