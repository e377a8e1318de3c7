-- begin_write for a user to be added (`p_id` null), or to be edited and perhaps moved to
-- `p_id_perfil`. Refused when the profile the user is in or comes to holds more than the actor's.
create or replace function begin_write_usuario(p_actor jsonb, p_id integer, p_id_perfil integer)
returns void
language plpgsql
as $$
declare
  v_actual integer;
  v_perfiles integer[];
begin
  -- Two users who trade their names or emails would otherwise wait for each other's.
  perform pg_advisory_xact_lock(7305511404);
  perform lock_usuarios((p_actor ->> 'id')::integer, p_id);
  select "idPerfil" into v_actual from usuario where id = p_id;
  v_perfiles := array_remove(array[v_actual, p_id_perfil], null);
  perform refuse_beyond(begin_write(p_actor, '{}', v_perfiles), v_perfiles);
end
$$;
