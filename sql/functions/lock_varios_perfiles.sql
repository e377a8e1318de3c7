-- Does the same as lock_perfiles, which calls it if a write concerns several profiles. `p_escritos`
-- contains no null.
--
-- The statements compare with an array, so PostgreSQL would plan them again at every call, and that
-- would take longer than locking the rows. `force_generic_plan` makes PostgreSQL keep their plans.
create or replace function lock_varios_perfiles(
  p_propio integer,
  p_escritos integer[],
  out perfiles integer[],
  out es_administrador boolean
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
