-- begin_write for a user to be added (`p_id` null), edited and perhaps moved to `p_id_perfil`, or
-- removed (`p_id_perfil` null). Refused when the profile that the user is in or comes to holds more
-- than the actor's; an unknown one is the violation that the write would be.
-- Returns whether there is such a user, who is locked then.
create or replace function begin_write_usuario(p_actor jsonb, p_id integer, p_id_perfil integer)
returns boolean
language plpgsql
as $$
declare
  v_actual integer;
  v_perfiles integer[];
  v_limit jsonb;
begin
  -- One at a time: two users who trade their names or emails would otherwise wait for each other's,
  -- as would two users who edit one another.
  perform pg_advisory_xact_lock(7305511404);
  select "idPerfil" into v_actual from usuario where id = p_id for no key update;
  select * into v_perfiles, v_limit from begin_write(p_actor, array[v_actual, p_id_perfil]);
  perform refuse_beyond(v_limit, v_perfiles);

  if p_id_perfil <> all(v_perfiles) and (p_id is null or v_actual is not null) then
    raise foreign_key_violation using constraint = 'usuario_perfil_fk';
  end if;
  return v_actual is not null;
end
$$;
