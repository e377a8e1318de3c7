-- Whether a user may see the users of a profile in detail: it holds no more than the user's own.
-- `p_actor` null: the client decides.
create or replace function may_reach(p_actor integer, p_id_perfil integer) returns boolean
language sql stable
as $$
  select p_actor is null or exists (
    select from usuario
    join perfil on perfil.id = "idPerfil"
    where usuario.id = p_actor
      and ("bitAdministrador" or held_by(perfil.id) @> held_by(p_id_perfil))
  );
$$;
