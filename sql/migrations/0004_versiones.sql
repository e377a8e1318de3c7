-- Each profile carries the version of its permission map and the number of its permission records.
-- Triggers keep both right, whoever writes. A version is random and not a counter: after a restore
-- or a failover to a standby that was behind, none comes back with other content.
alter table perfil
  add column "versionPermisos" uuid not null default gen_random_uuid(),
  add column "numPermisos" integer not null default 0;

-- Room on each page, so that a new version needs no new index entries.
alter table perfil set (fillfactor = 70);

update perfil set "numPermisos" = (select count(*) from permisos_perfil where "idPerfil" = perfil.id);

-- The service has locked these profiles already; anybody else gets them in the same order here.
create function touch_perfiles(p_ids integer[], p_deltas integer[]) returns void
language plpgsql
as $$
begin
  perform from perfil where id = any(p_ids) order by id for no key update;

  update perfil
  set "versionPermisos" = gen_random_uuid(), "numPermisos" = "numPermisos" + delta
  from unnest(p_ids, p_deltas) as cambio (id_perfil, delta)
  where perfil.id = id_perfil;
end
$$;

create function permisos_inserted() returns trigger
language plpgsql
as $$
begin
  perform touch_perfiles(array_agg("idPerfil"), array_agg(filas))
  from (select "idPerfil", count(*)::integer as filas from nuevos group by 1) as cambio;
  return null;
end
$$;

create function permisos_deleted() returns trigger
language plpgsql
as $$
begin
  perform touch_perfiles(array_agg("idPerfil"), array_agg(-filas))
  from (select "idPerfil", count(*)::integer as filas from viejos group by 1) as cambio;
  return null;
end
$$;

create function permisos_updated() returns trigger
language plpgsql
as $$
begin
  perform touch_perfiles(array_agg("idPerfil"), array_agg(filas))
  from (
    select "idPerfil", sum(fila)::integer as filas
    from (
      select "idPerfil", 1 as fila from nuevos union all select "idPerfil", -1 from viejos
    ) as filas
    group by 1
  ) as cambio;
  return null;
end
$$;

create function permisos_truncated() returns trigger
language plpgsql
as $$
begin
  update perfil set "versionPermisos" = gen_random_uuid(), "numPermisos" = 0;
  return null;
end
$$;

create function modulo_renamed() returns trigger
language plpgsql
as $$
begin
  perform touch_perfiles(array_agg("idPerfil"), array_agg(0))
  from permisos_perfil
  where "idModulo" = new.id;
  return null;
end
$$;

create trigger permisos_inserted after insert on permisos_perfil
  referencing new table as nuevos for each statement execute function permisos_inserted();
create trigger permisos_deleted after delete on permisos_perfil
  referencing old table as viejos for each statement execute function permisos_deleted();
create trigger permisos_updated after update on permisos_perfil
  referencing old table as viejos new table as nuevos
  for each statement execute function permisos_updated();
create trigger permisos_truncated after truncate on permisos_perfil
  for each statement execute function permisos_truncated();
create trigger modulo_renamed after update of "strNombreModulo" on modulo
  for each row when (old."strNombreModulo" <> new."strNombreModulo")
  execute function modulo_renamed();
