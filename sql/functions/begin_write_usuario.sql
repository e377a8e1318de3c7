-- Starts the write of a user, who is to be added (`p_id` null), overwritten with the profile
-- `p_id_perfil`, or removed (`p_id_perfil` null): locks the user's row and calls begin_write. The
-- transaction must have taken lock_usuarios or share_usuarios before. Returns whether the user
-- exists.
--
-- The caller's row and the user's are locked by ascending id. Two callers who edit each other would
-- otherwise deadlock.
--
-- Raises, in this order: LL403 when the user's present or future profile holds more than the
-- caller's; the foreign-key violation that an unknown profile would cause, unless the user is
-- unknown. Also raises what begin_write raises, before both of these.
create or replace function begin_write_usuario(p_id integer, p_id_perfil integer, p_actor jsonb)
returns boolean
language plpgsql
as $$
declare
  v_propio integer := (p_actor ->> 'id')::integer;
  v_actual integer;
  v_write record;
begin
  if v_propio < p_id then
    perform from usuario where id = v_propio for share;
  end if;
  if p_id is not null then
    select "idPerfil" into v_actual from usuario where id = p_id for no key update;
  end if;
  v_write := begin_write(array[v_actual, p_id_perfil], p_actor);
  if v_write.limite is not null then
    perform refuse_beyond(v_write.perfiles, v_write.limite);
  end if;

  if p_id_perfil <> all(v_write.perfiles) and (p_id is null or v_actual is not null) then
    raise foreign_key_violation using constraint = 'usuario_perfil_fk';
  end if;
  return v_actual is not null;
end
$$;
