-- Locks the profiles that a write changes and the caller's own, which is only read, by ascending id.
-- Returns those of `p_escritos` that exist, and whether the caller's profile is an administrator's.
--
-- Foreign-key checks wait for neither kind of lock. The plans are kept although the arrays differ in
-- length: otherwise PostgreSQL plans each of these statements again at every call.
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
