-- Whether the caller may read the users of the profile `p_id_perfil` in detail: that profile must
-- not hold more than the caller's. `p_actor`: see begin_write.
create or replace function may_reach(p_id_perfil integer, p_actor jsonb) returns boolean
language plpgsql stable
as $$
declare
  v_propio integer;
  v_administrador boolean;
begin
  if not (p_actor ->> 'enforced')::boolean then
    return true;
  end if;

  select perfil.id, "bitAdministrador" into v_propio, v_administrador
  from usuario
  join perfil on perfil.id = "idPerfil"
  where usuario.id = (p_actor ->> 'id')::integer;
  if not found then
    return false;
  end if;

  if v_administrador then
    return true;
  end if;
  return not exists (select from beyond(p_id_perfil, v_propio));
end
$$;
