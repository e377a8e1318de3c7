-- Adds a profile. An administrator's profile also gets one permission record for each module, with
-- all flags.
--
-- Takes {strNombrePerfil, bitAdministrador}; a missing `bitAdministrador` is false. Returns {data};
-- `data` is the new profile.
--
-- Acquires share_modulos, because it may write permission records.
--
-- If begin_write returns a limit, raises LL403 for an administrator's profile.
create or replace function insert_perfil(p_perfil jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_administrador boolean := coalesce((p_perfil ->> 'bitAdministrador')::boolean, false);
  v_write record;
  v_data jsonb;
begin
  perform share_modulos();
  v_write := begin_write('{}', p_actor);
  if v_administrador and v_write.limite is not null then
    perform refuse('{"administrador": true}');
  end if;

  insert into perfil ("strNombrePerfil", "bitAdministrador")
  values (p_perfil ->> 'strNombrePerfil', v_administrador)
  returning to_jsonb(perfil) into v_data;

  if v_administrador then
    perform grant_all_modulos((v_data ->> 'id')::integer);
  end if;
  return jsonb_build_object('data', v_data);
end
$$;
