-- Overwrites a profile. An unknown id changes nothing. If the administrator flag changes, the
-- profile's permission records are replaced too (contract, section 3). A profile that becomes an
-- administrator's gets one record for each module, with all flags. A profile that was an
-- administrator's has no records afterwards.
--
-- Takes the id of the profile, and {strNombrePerfil, bitAdministrador}. Returns {data}; `data` is
-- the profile, or null if the id is unknown.
--
-- Acquires share_modulos, because it may write permission records.
--
-- If begin_write returns a limit, raises LL403 if the administrator flag changes. Raises it also if
-- the name changes and the profile holds more than the caller's profile.
create or replace function update_perfil(p_id integer, p_perfil jsonb, p_actor jsonb) returns jsonb
language plpgsql
as $$
declare
  v_administrador boolean := (p_perfil ->> 'bitAdministrador')::boolean;
  v_nombre text := p_perfil ->> 'strNombrePerfil';
  v_old perfil;
  v_flag_changes boolean;
  v_write record;
  v_data jsonb;
begin
  perform share_modulos();
  v_write := begin_write(array[p_id], p_actor);
  if p_id <> all(v_write.perfiles) then
    return '{"data": null}';
  end if;

  select * into v_old from perfil where id = p_id;
  if v_old."strNombrePerfil" <> v_nombre then
    perform refuse_beyond(v_write.perfiles, v_write.limite);
  end if;
  v_flag_changes := v_old."bitAdministrador" <> v_administrador;
  if v_flag_changes and v_write.limite is not null then
    perform refuse('{"administrador": true}');
  end if;

  update perfil
  set
    "strNombrePerfil" = v_nombre,
    "bitAdministrador" = v_administrador
  where id = p_id
  returning to_jsonb(perfil) into v_data;

  if v_flag_changes then
    delete from permisos_perfil where "idPerfil" = p_id;
    if v_administrador then
      perform grant_all_modulos(p_id);
    end if;
  end if;
  return jsonb_build_object('data', v_data);
end
$$;
