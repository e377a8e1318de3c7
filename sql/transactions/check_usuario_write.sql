-- Raises what insert_usuario (`p_id` null) or update_usuario would raise now because of the caller
-- or of the profiles. Returns {} otherwise, and changes nothing.
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
