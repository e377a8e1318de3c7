-- Whether a module's name is one that the service itself decides by.
create or replace function is_modulo_de_sistema(p_nombre text) returns boolean
language sql immutable
as $$
  select p_nombre in ('USUARIO', 'PERFIL', 'MODULO', 'PERMISOS');
$$;
