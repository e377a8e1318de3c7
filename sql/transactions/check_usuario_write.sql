-- Checks whether the caller may add a user (`p_id` is null) or overwrite one. Changes nothing.
--
-- Takes the id of the user and the id of the profile that the user is to have. `p_actor` is
-- described in begin_write. Returns {}.
--
-- Acquires share_usuarios and the locks of begin_write_usuario, as the write itself does. Raises
-- what begin_write_usuario raises.
create or replace function check_usuario_write(p_id integer, p_id_perfil integer, p_actor jsonb)
returns jsonb
language plpgsql
as $$
begin
  perform share_usuarios();
  perform begin_write_usuario(p_id, p_id_perfil, p_actor);
  return '{}';
end
$$;
