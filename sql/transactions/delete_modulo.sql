-- Removes a module with its permission records; without effect when there is none with that id.
-- Returns false for a system module, which stays.
-- `p_actor`: see begin_write; refused when a profile whose records go holds more than the actor's.
create or replace function delete_modulo(p_actor integer, p_id integer) returns boolean
language plpgsql
as $$
declare
  v_perfiles integer[];
begin
  loop
    v_perfiles := perfiles_of_modulo(p_id);
    begin
      perform refuse_beyond(begin_write(p_actor, v_perfiles), v_perfiles);
      -- Waits for the records that are being added, and lets no more be.
      perform from modulo where id = p_id for update;
      if perfiles_of_modulo(p_id) is distinct from v_perfiles then
        raise sqlstate 'LL001';
      end if;
      if (select is_modulo_de_sistema("strNombreModulo") from modulo where id = p_id) then
        return false;
      end if;
      delete from modulo where id = p_id;
      return true;
    exception when sqlstate 'LL001' then
      -- A profile got a record while this waited: again with its lock too, see begin_write_permiso.
      null;
    end;
  end loop;
end
$$;
