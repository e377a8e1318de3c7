-- Starts every write: locks the user who writes, then the profiles concerned, and returns the
-- limit that the write must stay within: what the writer's profile holds now. No limit (null) for
-- an administrator, and where `p_actor` is null because the client decides.
create or replace function begin_write(
  p_actor integer, p_written integer[], p_read integer[] default '{}'
) returns jsonb
language plpgsql
as $$
declare
  v_perfil integer;
  v_held jsonb;
begin
  perform lock_usuarios(p_actor, null);
  select "idPerfil" into v_perfil from usuario where id = p_actor and "idEstadoUsuario";
  if p_actor is not null and not found then
    perform refuse();
  end if;

  perform lock_perfiles(p_written, p_read || v_perfil);
  v_held := held_by(v_perfil);
  return case when v_held ? 'administrador' then null else v_held end;
end
$$;
