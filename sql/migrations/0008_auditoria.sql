-- Replicas of an older release go on writing until the migration begins. First, wait until their
-- writes of permission records have ended. The key is that of lock_modulos. Then lock the tables in
-- the order in which a deletion of a profile writes them, so that the migration does not deadlock
-- with a replica.
select pg_advisory_xact_lock(7305511406);
lock table perfil, permisos_perfil, modulo, usuario in share row exclusive mode;

-- The functions below with `security definer` search in temporary tables last. Otherwise any user
-- of the database could put a temporary table in the place of `auditoria`. New objects are still
-- created in the first schema.
select set_config('search_path', current_setting('search_path') || ', pg_temp', true);

-- The audit: one row for each change of a record, and for each login. Triggers write the rows in
-- the transaction of the change, so changes by `psql` and by replicas of an older release have
-- rows, too.
create table auditoria (
  id bigint generated always as identity constraint auditoria_pk primary key,
  -- When the change was made, by the clock of the database.
  fecha timestamptz not null default clock_timestamp(),
  -- Who made the change: the user, and the profile that the user had at that time. If the change
  -- did not come from a user of the service, "strNombreUsuario" is the user of the database, and
  -- the other columns are null.
  "idUsuario" integer,
  "strNombreUsuario" text not null,
  "idPerfil" integer,
  "strNombrePerfil" text,
  -- The client's address, and the request's id (the header `x-request-id`).
  ip text,
  "idPeticion" text,
  -- What was done: insert, update, delete, login, logout, password or restore.
  accion text not null,
  -- The kind of record: usuario, perfil, modulo, permisos or auditoria.
  entidad text not null,
  -- The id of the record. For `permisos` it is the id of the profile that has the permissions.
  "idEntidad" integer,
  -- The name of the record before the change, or that of a new record. For `permisos` it is the
  -- name of the profile.
  nombre text,
  -- The record before and after the change. For an update, only the fields that differ.
  antes jsonb,
  despues jsonb
);

-- One index for each filter of GET /api/auditoria. The rows of a page are adjacent in its index. No
-- two indexes begin with the same column, because PostgreSQL may choose the index for a comparison
-- of rows by its first column alone.
create index auditoria_fecha on auditoria (fecha, id);
create index auditoria_usuario on auditoria ("idUsuario", fecha, id);
create index auditoria_entidad on auditoria (entidad, fecha, id);
create index auditoria_registro on auditoria ("idEntidad", entidad, fecha, id);

-- The columns of the audit that say who made a change.
create type actor as (
  "idUsuario" integer,
  "strNombreUsuario" text,
  "idPerfil" integer,
  "strNombrePerfil" text,
  ip text,
  "idPeticion" text
);

-- Adds a row to the audit. `llavero.actor` is the actor as a text. begin_write, begin_sesion and
-- ensure_administrador set it for their transactions. If it is not set, the row names the user of
-- the database.
create function audit(
  p_accion text,
  p_entidad text,
  p_id integer,
  p_nombre text,
  p_antes jsonb,
  p_despues jsonb
) returns void
language plpgsql
as $$
declare
  v_actor actor := nullif(current_setting('llavero.actor', true), '')::actor;
begin
  insert into auditoria (
    "idUsuario",
    "strNombreUsuario",
    "idPerfil",
    "strNombrePerfil",
    ip,
    "idPeticion",
    accion,
    entidad,
    "idEntidad",
    nombre,
    antes,
    despues
  )
  values (
    v_actor."idUsuario",
    coalesce(v_actor."strNombreUsuario", session_user),
    v_actor."idPerfil",
    v_actor."strNombrePerfil",
    v_actor.ip,
    v_actor."idPeticion",
    p_accion,
    p_entidad,
    p_id,
    p_nombre,
    p_antes,
    p_despues
  );
end
$$;

-- Returns the name that a profile or a module has after its last row in the audit. The row of a
-- deletion has the name in `nombre`. In that of a rename, `nombre` is the old name. This function
-- is needed if the record has just been deleted, as by the cascade of a foreign key.
create function recorded_name(p_entidad text, p_id integer) returns text
language sql stable
as $$
  select coalesce(despues ->> 'strNombrePerfil', despues ->> 'strNombreModulo', nombre)
  from auditoria
  where entidad = p_entidad and "idEntidad" = p_id
  order by fecha desc, id desc
  limit 1
$$;

-- Returns the name of a module, which may just have been deleted. The setting makes PostgreSQL use
-- the primary key. Otherwise a plan from a time of few modules would read the whole table at each
-- call.
create function modulo_name(p_id integer) returns text
language plpgsql stable set enable_seqscan = off
as $$
declare
  v_nombre text;
begin
  select "strNombreModulo" into v_nombre from modulo where id = p_id;
  return coalesce(v_nombre, recorded_name('modulo', p_id));
end
$$;

-- Returns the fields of a record as the audit contains them: with *** instead of the hash of the
-- password, with the name of a user's profile, and without what is derived from the permission
-- records.
create function audited_fields(p_fields jsonb) returns jsonb
language plpgsql stable strict
as $$
begin
  p_fields := p_fields - '{versionPermisos,numPermisos}'::text[];
  if p_fields ? 'strPwd' then
    p_fields := p_fields || '{"strPwd": "***"}';
  end if;
  if p_fields ? 'idPerfil' then
    p_fields := p_fields || jsonb_build_object(
      'nombrePerfil',
      (select "strNombrePerfil" from perfil where id = (p_fields ->> 'idPerfil')::integer)
    );
  end if;
  return p_fields;
end
$$;

-- The triggers. A trigger function with `security definer` writes the audit for every user of the
-- database who may change a record, even if that user may not write to `auditoria`.
--
-- trigger_audit_record is for the tables whose rows have an audit row each. The column
-- "strNombre…", if there is one, has the name of the record. The trigger records the fields in
-- which the record before the change differs from the one after it. A change of the password alone
-- has the action `password`. If only the version of the sessions is raised, the action is `logout`.
create function trigger_audit_record() returns trigger
language plpgsql security definer set search_path from current
as $$
declare
  v_antes jsonb := to_jsonb(old);
  v_despues jsonb := to_jsonb(new);
  v_record jsonb := coalesce(v_antes, v_despues);
  v_equal text[];
  v_nombre text := 'strNombre' || initcap(tg_table_name);
begin
  if tg_op = 'TRUNCATE' then
    execute format(
      'select audit(''delete'', %1$L, id, to_jsonb(fila) ->> %2$L, audited_fields(to_jsonb(fila)), null)
       from %1$I as fila',
      tg_table_name,
      v_nombre
    );
    return null;
  end if;

  if tg_op = 'UPDATE' then
    v_equal := array(
      select key from jsonb_object_keys(v_antes) as key where v_antes -> key = v_despues -> key
    );
    v_antes := v_antes - v_equal;
    v_despues := v_despues - v_equal;
  end if;

  perform audit(
    case
      when v_despues ? 'strPwd' and v_despues - '{strPwd,versionSesion}'::text[] = '{}' then 'password'
      when v_despues ? 'versionSesion' and v_despues - 'versionSesion' = '{}' then 'logout'
      else lower(tg_op collate "C")
    end,
    tg_table_name,
    (v_record ->> 'id')::integer,
    v_record ->> v_nombre,
    audited_fields(v_antes),
    audited_fields(v_despues)
  );
  return null;
end
$$;

-- The triggers of permission records give each profile whose records have changed a new version,
-- count its records, and record the change with record_permisos.
--
-- trigger_audit_permisos is for added and deleted records. It goes through the profiles by
-- ascending id, so that two writes do not deadlock.
create function trigger_audit_permisos() returns trigger
language plpgsql security definer set search_path from current
as $$
begin
  -- replace_permisos deletes and inserts all records of a profile, and records only how they
  -- differ.
  if current_setting('llavero.matriz', true) = 'true' then
    return null;
  end if;

  perform record_permisos(
    "idPerfil",
    case tg_op when 'INSERT' then n else -n end,
    case tg_op when 'DELETE' then permisos end,
    case tg_op when 'INSERT' then permisos end
  )
  from (
    select
      "idPerfil",
      count(*) as n,
      jsonb_build_object('permisos', array_agg(
        to_jsonb(filas) || jsonb_build_object('nombreModulo', modulo_name("idModulo"))
        order by "idModulo"
      )) as permisos
    from filas
    group by "idPerfil"
    order by "idPerfil"
  ) as cambio;
  return null;
end
$$;

-- trigger_audit_updated_permiso is for an updated record.
create function trigger_audit_updated_permiso() returns trigger
language plpgsql security definer set search_path from current
as $$
declare
  v_nombre jsonb := jsonb_build_object('nombreModulo', modulo_name(old."idModulo"));
  -- to_jsonb(old) has every column. The plan of `old.*` would keep the columns that the table had
  -- when the connection first used it.
  v_antes jsonb := jsonb_build_object('permisos', array[to_jsonb(old) || v_nombre]);
  v_despues jsonb;
begin
  -- Most updates do not change the module, whose name is then looked up once.
  if old."idModulo" <> new."idModulo" then
    v_nombre := jsonb_build_object('nombreModulo', modulo_name(new."idModulo"));
  end if;
  v_despues := jsonb_build_object('permisos', array[to_jsonb(new) || v_nombre]);

  if (old.id, old."idPerfil") = (new.id, new."idPerfil") then
    perform record_permisos(new."idPerfil", 0, v_antes, v_despues);
  else
    -- Two rows, so that a replay never has the record in two profiles.
    perform record_permisos(old."idPerfil", -1, v_antes, null);
    perform record_permisos(new."idPerfil", 1, null, v_despues);
  end if;
  return null;
end
$$;

-- Gives a profile a new version of its permission records, adds `p_filas` to their number, and adds
-- a row to the audit. Takes the changed records before and after the change, as {permisos: [{…all
-- columns, nombreModulo}]} in the order of their modules. `p_antes` is null for added records, and
-- `p_despues` for deleted ones.
create function record_permisos(p_id_perfil integer, p_filas bigint, p_antes jsonb, p_despues jsonb)
returns void
language plpgsql
as $$
declare
  v_nombre text;
begin
  update perfil
  set "versionPermisos" = gen_random_uuid(), "numPermisos" = "numPermisos" + p_filas
  where id = p_id_perfil
  returning "strNombrePerfil" into v_nombre;

  perform audit(
    case when p_antes is null then 'insert' when p_despues is null then 'delete' else 'update' end,
    'permisos',
    p_id_perfil,
    coalesce(v_nombre, recorded_name('perfil', p_id_perfil)),
    p_antes,
    p_despues
  );
end
$$;

-- trigger_delete_permisos deletes all permission records before a `truncate`, so that the trigger
-- of the deletion records them. The trigger permisos_truncated of 0004 remains. It makes the
-- `truncate` fail if the deletion has not seen all records.
create function trigger_delete_permisos() returns trigger
language plpgsql security definer set search_path from current
as $$
begin
  delete from permisos_perfil;
  return null;
end
$$;

create trigger audit_written after insert or update or delete on usuario
  for each row execute function trigger_audit_record();
create trigger audit_truncated before truncate on usuario
  for each statement execute function trigger_audit_record();

-- An update of only the version and the number of the permission records is not recorded. Triggers
-- make such updates, often in tens of thousands of profiles.
create trigger audit_written
  after insert or delete or update of id, "strNombrePerfil", "bitAdministrador" on perfil
  for each row execute function trigger_audit_record();
create trigger audit_truncated before truncate on perfil
  for each statement execute function trigger_audit_record();

create trigger audit_written after insert or update or delete on modulo
  for each row execute function trigger_audit_record();
create trigger audit_truncated before truncate on modulo
  for each statement execute function trigger_audit_record();

-- The next three triggers replace those that only counted the permission records and gave the
-- profiles versions. `drop trigger` would lock out the readers of the table, and replicas of an
-- older release could deadlock with it. A statement may insert or delete the records of tens of
-- thousands of profiles, so the triggers for insertions and deletions run once for each statement.
create or replace trigger permisos_inserted after insert on permisos_perfil
  referencing new table as filas
  for each statement execute function trigger_audit_permisos();
create or replace trigger permisos_updated after update on permisos_perfil
  for each row execute function trigger_audit_updated_permiso();
create or replace trigger permisos_deleted after delete on permisos_perfil
  referencing old table as filas
  for each statement execute function trigger_audit_permisos();
create trigger audit_truncated before truncate on permisos_perfil
  for each statement execute function trigger_delete_permisos();
drop function permisos_inserted(), permisos_updated(), permisos_deleted();

-- A rename of a module gives each profile with a record for the module a new version. The profiles
-- are locked by ascending id, so that two writes do not deadlock. The records are read again
-- afterwards, because a write for which this one has waited may have moved them to other profiles.
create or replace function modulo_renamed() returns trigger
language plpgsql set search_path from current
as $$
begin
  perform from perfil
  where id in (select "idPerfil" from permisos_perfil where "idModulo" = new.id)
  order by id
  for no key update;

  update perfil
  set "versionPermisos" = gen_random_uuid()
  where id in (select "idPerfil" from permisos_perfil where "idModulo" = new.id);
  return null;
end
$$;
drop function touch_perfiles(integer[], integer[]);

-- A new profile has no records, and a version that no profile has had. A profile that `psql`
-- copies, or deletes and adds again, would otherwise have the version of other records.
create or replace function perfil_inserted() returns trigger
language plpgsql
as $$
begin
  new."numPermisos" := 0;
  new."versionPermisos" := gen_random_uuid();
  return new;
end
$$;

-- Only the owner may execute the trigger functions, which run with the owner's rights, and the
-- functions with variables that they call. Otherwise another user of the database could make them
-- run that user's own functions with the owner's rights, in two ways: with a temporary table that
-- has one of these triggers and columns of types of that user, or with a type that has the name of
-- a variable's type.
revoke execute on function
  audit(text, text, integer, text, jsonb, jsonb),
  modulo_name(integer),
  record_permisos(integer, bigint, jsonb, jsonb),
  trigger_audit_record(),
  trigger_audit_permisos(),
  trigger_audit_updated_permiso(),
  trigger_delete_permisos()
from public;

-- Refuses to change or to remove rows of the audit, except while delete_auditoria sets
-- `llavero.retencion`. This protects against mistakes and not against the owner of the table, who
-- could set `llavero.retencion` or drop this trigger.
create function protect_auditoria() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and current_setting('llavero.retencion', true) = 'true' then
    return null;
  end if;
  raise insufficient_privilege using
    message = 'the audit cannot be changed',
    hint = 'delete_auditoria(before) removes the rows that are no longer needed';
end
$$;

create trigger protect_auditoria before update or delete or truncate on auditoria
  for each statement execute function protect_auditoria();

-- A new password and a deactivation end all sessions of a user, whoever writes them.
--
-- If the service adds a user, or changes a name or an email, the trigger acquires an advisory lock,
-- and reports a taken email before a taken name. Without the lock, two transactions that exchange
-- the names of two users could deadlock in the unique index. A write without `llavero.actor` skips
-- this: it may hold locks of rows already, and could deadlock.
--
-- The trigger has no `when`: PostgreSQL parses such a condition at each statement, which takes
-- longer than a call of this function.
create function prepare_usuario() returns trigger
language plpgsql set search_path from current
as $$
begin
  -- In an insertion, `old` is null.
  if old."strPwd" <> new."strPwd" or old."idEstadoUsuario" and not new."idEstadoUsuario" then
    new."versionSesion" := old."versionSesion" + 1;
  end if;

  if current_setting('llavero.actor', true) <> '' and (
    old."strNombreUsuario" is distinct from new."strNombreUsuario"
    or old."strCorreo" is distinct from new."strCorreo"
  ) then
    perform pg_advisory_xact_lock(7305511407);
    perform refuse_taken_correo(new.id, new."strCorreo");
  end if;
  return new;
end
$$;

create trigger prepare_usuario before insert or update on usuario
  for each row execute function prepare_usuario();

-- The records that exist already. With these rows, the audit alone suffices to rebuild the tables,
-- except the hashes.
select audit('insert', 'modulo', id, "strNombreModulo", null, to_jsonb(modulo))
from modulo;
select audit('insert', 'perfil', id, "strNombrePerfil", null, audited_fields(to_jsonb(perfil)))
from perfil;
select audit('insert', 'usuario', id, "strNombreUsuario", null, audited_fields(to_jsonb(usuario)))
from usuario;
select audit(
  'insert',
  'permisos',
  "idPerfil",
  "strNombrePerfil",
  null,
  jsonb_build_object('permisos', array_agg(fila order by "idModulo"))
)
from (
  select permisos_perfil.*, "strNombreModulo" as "nombreModulo"
  from permisos_perfil
  join modulo on modulo.id = "idModulo"
) as fila
join perfil on perfil.id = "idPerfil"
group by "idPerfil", "strNombrePerfil";

-- Drop the functions that only replicas of release 0.1.0 call. While delete_modulo(jsonb, integer)
-- exists, for example, a call of delete_modulo(integer, jsonb) with parameters is ambiguous.
drop function if exists
  begin_write(jsonb, integer[]),
  begin_write_permiso(jsonb, integer, jsonb),
  begin_write_usuario(jsonb, integer, integer),
  delete_modulo(jsonb, integer),
  delete_perfil(jsonb, integer),
  delete_permiso(jsonb, integer),
  delete_usuario(jsonb, integer),
  ensure_administrador(text, text, text),
  held_by(integer),
  insert_modulo(jsonb, text, text),
  insert_perfil(jsonb, text, boolean),
  insert_permiso(
    jsonb, integer, integer, boolean, boolean, boolean, boolean, boolean
  ),
  insert_usuario(jsonb, text, integer, text, text, text, boolean, text, text),
  lock_perfiles(integer[], integer),
  may_reach(integer, integer),
  refuse_beyond(jsonb, integer[]),
  refuse_granting(jsonb, jsonb),
  replace_permisos(jsonb, integer, jsonb),
  update_modulo(jsonb, integer, text, text),
  update_perfil(jsonb, integer, text, boolean),
  update_permiso(
    jsonb, integer, integer, integer, boolean, boolean, boolean, boolean, boolean
  ),
  update_usuario(jsonb, integer, text, integer, text, text, text, boolean, text, text);
