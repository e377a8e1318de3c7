-- Removes one permission record; without effect when there is none with that id.
create or replace function delete_permiso(p_id integer) returns void
language plpgsql
as $$
begin
  perform from lock_permiso(p_id);

  delete from permisos_perfil where id = p_id;
end
$$;
