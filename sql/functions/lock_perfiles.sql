-- Locks the caller's profile `p_propio`, which is only read, and the profiles `p_escritos`, which
-- are to be written, by ascending id. Foreign-key checks wait for neither kind of lock.
-- Returns those of `p_escritos` that exist, and whether the caller's profile is an administrator's.
--
-- `force_generic_plan` makes PostgreSQL keep the plans. Statements that take an array are otherwise
-- planned at every call, which took longer than the locks: 40 µs instead of 15.
create or replace function lock_perfiles(
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
