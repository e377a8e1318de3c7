-- The same as lock_perfiles for any number of profiles that are to be written.
--
-- `force_generic_plan` makes PostgreSQL keep the plans. Statements that take an array are otherwise
-- planned at every call, which takes longer than the locks.
create or replace function lock_varios_perfiles(
  p_propio integer, p_escritos integer[], out perfiles integer[], out es_administrador boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
begin
  perfiles := '{}';

  if p_propio >= any(p_escritos) then
    perfiles := array(
      select id from perfil
      where id = any(p_escritos) and id <= p_propio
      order by id
      for no key update
    );
  end if;

  select "bitAdministrador" into es_administrador
  from perfil
  where id = p_propio
  for share;

  if p_propio < any(p_escritos) then
    perfiles := perfiles || array(
      select id from perfil
      where id = any(p_escritos) and id > p_propio
      order by id
      for no key update
    );
  end if;
end
$$;
