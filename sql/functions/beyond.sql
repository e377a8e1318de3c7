-- Takes the ids of two profiles. Returns one row with `p_id_perfil` if that profile holds more than
-- the profile `p_propio`, and no row otherwise. A profile holds more than another one if it has a
-- permission that the other one lacks, or if it is an administrator's profile.
--
-- Acquires no locks. A write has locked both profiles before it calls this function.
--
-- The function returns a set because PostgreSQL inlines such a function into the calling statement,
-- and keeps the plan of that statement. Up to PostgreSQL 17, a function that returns a boolean
-- would be planned again at every call.
--
-- `bool_or` reads all records of the profile `p_id_perfil`. With `exists` instead, PostgreSQL would
-- expect to find a matching record early. If the table has no statistics, it would then scan the
-- whole table.
create or replace function beyond(p_id_perfil integer, p_propio integer) returns setof integer
language sql stable
as $$
  select id
  from perfil
  where id = p_id_perfil and (
    "bitAdministrador" or (
      select bool_or(grants_more(suyo, propio))
      from permisos_perfil as suyo
      left join permisos_perfil as propio
        on propio."idPerfil" = p_propio and propio."idModulo" = suyo."idModulo"
      where suyo."idPerfil" = p_id_perfil
    )
  );
$$;
