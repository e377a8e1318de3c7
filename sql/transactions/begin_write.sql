-- Starts every write: locks the user who writes, then the profiles concerned; decides once more, now
-- that nothing can change, whether the user may; and returns the limit that the write must stay
-- within: what the user's profile holds. No limit (null) for an administrator, and where the client
-- decides. `p_actor`: {id, ver, modulo, accion, enforced}, the session as it was first looked at.
create or replace function begin_write(
  p_actor jsonb, p_written integer[], p_read integer[] default '{}'
) returns jsonb
language plpgsql
as $$
declare
  v_usuario usuario;
  v_held jsonb;
begin
  perform lock_usuarios((p_actor ->> 'id')::integer, null);
  select * into v_usuario from usuario
  where id = (p_actor ->> 'id')::integer and "idEstadoUsuario"
    and "versionSesion" = (p_actor ->> 'ver')::integer;
  if not found then
    raise exception using errcode = 'LL401', message = 'session ended';
  end if;

  perform lock_perfiles(p_written, p_read || v_usuario."idPerfil");
  if not (p_actor ->> 'enforced')::boolean then
    return null;
  end if;
  v_held := held_by(v_usuario."idPerfil");
  if v_held ? 'administrador' then
    return null;
  end if;
  if not exists (
    select from modulo
    where "strNombreModulo" = p_actor ->> 'modulo' and v_held -> id::text ? (p_actor ->> 'accion')
  ) then
    perform refuse();
  end if;
  return v_held;
end
$$;
