-- begin_write for a permission record: for the profile that it belongs to, and `p_id_perfil` with
-- it where the record is about to move there. Gives both in `perfiles`.
create or replace function begin_write_permiso(
  p_actor jsonb, p_id integer, p_id_perfil integer default null,
  out perfiles integer[], out limite jsonb
)
language plpgsql
as $$
declare
  v_seen integer;
  v_now integer;
begin
  loop
    select "idPerfil" into v_seen from permisos_perfil where id = p_id;
    begin
      perfiles := array_remove(array[v_seen, p_id_perfil], null);
      limite := begin_write(p_actor, perfiles);
      select "idPerfil" into v_now from permisos_perfil where id = p_id;
      if v_now is distinct from v_seen then
        raise sqlstate 'LL001';
      end if;
      return;
    exception when sqlstate 'LL001' then
      -- The record moved while this waited. Leaving the block by its exception gives back the
      -- locks, so that the next round takes all of its own in ascending order again.
      null;
    end;
  end loop;
end
$$;
