-- Begins a write of a user. The service also calls this function before it hashes a password or
-- uploads an image.
--
-- Takes the id of the user, which is null for a new user. Takes the id of the profile that the user
-- is to have, which is null for a deletion.
--
-- Returns whether the user exists, which is false for a new user.
--
-- Acquires lock_usuario and locks the user's row with `for no key update`, so that nobody gives the
-- user another profile meanwhile. Then locks the caller and the profiles with begin_write. If the
-- caller has the lower id, share_usuario comes before lock_usuario, so that two callers who edit
-- each other do not deadlock.
--
-- Raises in this order:
-- 1. LL403 if the user's present profile or the new one holds more than the caller's profile;
-- 2. the foreign-key violation that an unknown new profile would cause. It is not raised if `p_id`
--    is an unknown id, because then nothing is written.
create or replace function begin_write_usuario(p_id integer, p_id_perfil integer, p_actor jsonb)
returns boolean
language plpgsql
as $$
declare
  v_id_actor integer := (p_actor ->> 'id')::integer;
  v_old_perfil integer;
  v_write record;
  v_exists boolean;
begin
  if v_id_actor < p_id then
    perform share_usuario(v_id_actor);
  end if;
  perform lock_usuario(p_id);
  select "idPerfil" into v_old_perfil from usuario where id = p_id for no key update;
  v_write := begin_write(array[v_old_perfil, p_id_perfil], p_actor);
  perform refuse_beyond(v_write.perfiles, v_write.limite);

  v_exists := v_old_perfil is not null;
  if p_id_perfil is not null
    and p_id_perfil <> all(v_write.perfiles)
    and (p_id is null or v_exists) then
    raise foreign_key_violation using constraint = 'usuario_perfil_fk';
  end if;
  return v_exists;
end
$$;
