-- Whether a module has one of the names by which the service decides who may do what.
create or replace function is_modulo_de_sistema(p_nombre text) returns boolean
language sql immutable
as $$
  select p_nombre in ('USUARIO', 'PERFIL', 'MODULO', 'PERMISOS');
$$;
