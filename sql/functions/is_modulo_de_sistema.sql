-- Whether `p_nombre` is the name of a system module. The service decides by these modules who may
-- do what; ModuloDeSistema in src/auth/schemas.ts has the same list.
create or replace function is_modulo_de_sistema(p_nombre text) returns boolean
language sql immutable
as $$
  select p_nombre in ('USUARIO', 'PERFIL', 'MODULO', 'PERMISOS');
$$;
