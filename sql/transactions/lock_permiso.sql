-- Locks the profile that a permission record belongs to, and `p_id_perfil` with it where the
-- record is about to move there. Returns the record's profile, null when there is no such record.
create or replace function lock_permiso(p_id integer, p_id_perfil integer default null)
returns integer
language plpgsql
as $$
declare
  v_visto integer;
  v_actual integer;
begin
  loop
    select "idPerfil" into v_visto from permisos_perfil where id = p_id;
    begin
      perform lock_perfiles(array[v_visto, p_id_perfil]);
      select "idPerfil" into v_actual from permisos_perfil where id = p_id;
      if v_actual is distinct from v_visto then
        raise sqlstate 'LL001';
      end if;
      return v_actual;
    exception when sqlstate 'LL001' then
      -- The record moved while this waited. Leaving the block by its exception gives back the
      -- locks, so that the next round takes all of its own in ascending order again.
      null;
    end;
  end loop;
end
$$;
