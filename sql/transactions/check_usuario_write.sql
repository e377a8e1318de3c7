-- Checks whether the caller may add a user (`p_id` is null) or overwrite one. Changes nothing. The
-- service calls it before it hashes a password or uploads an image, so that neither is done for a
-- write that would be refused. The write itself checks again.
--
-- Takes the id of the user and the id of the profile that the user is to have. `p_actor` is
-- described in begin_write. Returns {}.
--
-- Acquires the locks of begin_write_usuario, and raises what that function raises.
create or replace function check_usuario_write(p_id integer, p_id_perfil integer, p_actor jsonb)
returns jsonb
language plpgsql
as $$
begin
  perform begin_write_usuario(p_id, p_id_perfil, p_actor);
  return '{}';
end
$$;
