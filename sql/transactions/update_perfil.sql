-- Overwrites a profile. If the administrator flag changes, the profile's permission records are
-- replaced (contract, section 3): by one per module with every flag, or by none.
--
-- `p_perfil`: {strNombrePerfil, bitAdministrador}. Returns {data: the profile, null if unknown;
-- changes}.
-- Refuses to change the flag if the caller is limited (see begin_write).
create or replace function update_perfil(p_id integer, p_perfil jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_ahora boolean := (p_perfil ->> 'bitAdministrador')::boolean;
  v_antes jsonb;
  v_write record;
  v_data jsonb;
begin
  perform share_modulos();
  v_write := begin_write(array[p_id], p_actor);
  if v_write.perfiles = '{}' then
    return jsonb_build_object('data', null, 'changes', '{}'::jsonb);
  end if;

  select perfil_data(perfil) into v_antes from perfil where id = p_id;
  if (v_antes ->> 'bitAdministrador')::boolean <> v_ahora then
    if v_write.limite is not null then
      perform refuse();
    end if;
    delete from permisos_perfil where "idPerfil" = p_id;
    if v_ahora then
      perform grant_all_modulos(p_id);
    end if;
  end if;

  update perfil
  set "strNombrePerfil" = p_perfil ->> 'strNombrePerfil', "bitAdministrador" = v_ahora
  where id = p_id
  returning perfil_data(perfil) into v_data;
  return jsonb_build_object('data', v_data, 'changes', perfil_changes(v_antes, v_data));
end
$$;
