-- Takes the name of a module. Returns whether it is a system module. The permissions for the system
-- modules decide who may use the endpoints of the service. ModuloDeSistema in src/access/caller.ts
-- has the same list.
create or replace function is_modulo_de_sistema(p_nombre text) returns boolean
language sql immutable
as $$
  select p_nombre in ('USUARIO', 'PERFIL', 'MODULO', 'PERMISOS');
$$;
