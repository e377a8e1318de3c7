-- The profiles that have a permission record for a module.
create or replace function perfiles_of_modulo(p_id integer) returns integer[]
language sql stable
as $$
  select coalesce(array_agg("idPerfil" order by "idPerfil"), '{}')
  from permisos_perfil
  where "idModulo" = p_id;
$$;
