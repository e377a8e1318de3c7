-- Makes touch_perfiles update a single profile by its id, with a plan that PostgreSQL keeps. Nearly
-- every write changes the permission records of one profile. Statements that take arrays are
-- planned at every call, which took longer than the update.
create or replace function touch_perfiles(p_ids integer[], p_deltas integer[]) returns void
language plpgsql
as $$
begin
  if p_ids is null then
    return;
  end if;

  if cardinality(p_ids) = 1 then
    update perfil
    set "versionPermisos" = gen_random_uuid(), "numPermisos" = "numPermisos" + p_deltas[1]
    where id = p_ids[1];
    return;
  end if;

  perform from perfil where id = any(p_ids) order by id for no key update;

  update perfil
  set "versionPermisos" = gen_random_uuid(), "numPermisos" = "numPermisos" + delta
  from unnest(p_ids, p_deltas) as cambio (id_perfil, delta)
  where perfil.id = id_perfil;
end
$$;
