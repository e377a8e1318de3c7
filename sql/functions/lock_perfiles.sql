-- Locks the caller's profile `p_propio`, which is only read, and the profiles `p_escritos`, which
-- are to be written, by ascending id. Null elements are ignored. Foreign-key checks wait for neither
-- kind of lock.
-- Returns those of `p_escritos` that exist, and whether the caller's profile is an administrator's.
--
-- Nearly every write concerns one profile. The statements for one profile compare with `=`, and
-- PostgreSQL keeps the plans of such statements (see README.md).
create or replace function lock_perfiles(
  p_propio integer, p_escritos integer[], out perfiles integer[], out es_administrador boolean
)
language plpgsql
as $$
declare
  v_escritos integer[] := array_remove(p_escritos, null);
  v_escrito integer := v_escritos[1];
  v_id integer;
  v_locked record;
begin
  if v_escrito <> any(v_escritos) then
    v_locked := lock_varios_perfiles(p_propio, v_escritos);
    perfiles := v_locked.perfiles;
    es_administrador := v_locked.es_administrador;
    return;
  end if;

  if v_escrito <= p_propio then
    select id into v_id from perfil where id = v_escrito for no key update;
  end if;
  select "bitAdministrador" into es_administrador from perfil where id = p_propio for share;
  if v_escrito > p_propio then
    select id into v_id from perfil where id = v_escrito for no key update;
  end if;
  perfiles := array_remove(array[v_id], null);
end
$$;
