-- begin_write for a module to be renamed or deleted, which changes the permission maps of the
-- profiles that have records for it: for those, and then for the module itself. Gives the limit
-- and those profiles.
create or replace function begin_write_modulo(
  p_actor jsonb, p_id integer, out perfiles integer[], out limite jsonb
)
language plpgsql
as $$
begin
  loop
    perfiles := perfiles_of_modulo(p_id);
    begin
      limite := begin_write(p_actor, perfiles);
      -- Waits for the records that are being added, and lets no more be.
      perform from modulo where id = p_id for update;
      if perfiles_of_modulo(p_id) is distinct from perfiles then
        raise sqlstate 'LL001';
      end if;
      return;
    exception when sqlstate 'LL001' then
      -- A profile got a record while this waited: again with its lock too, see begin_write_permiso.
      null;
    end;
  end loop;
end
$$;
