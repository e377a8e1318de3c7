-- Lower case for comparing and searching: of ASCII and of the Spanish letters, the same under every
-- locale (C knows ASCII alone, and Turkish has another lower case of I).
create function fold_case(p_texto text) returns text
language sql immutable parallel safe
as $$
  select lower((
    replace(replace(replace(replace(replace(replace(replace(
      p_texto, 'Á', 'á'), 'É', 'é'), 'Í', 'í'), 'Ó', 'ó'), 'Ú', 'ú'), 'Ü', 'ü'), 'Ñ', 'ñ')
  ) collate "C")
$$;

create table perfil (
  id integer generated always as identity constraint perfil_pk primary key,
  "strNombrePerfil" text not null,
  "bitAdministrador" boolean not null default false
);

create table modulo (
  id integer generated always as identity constraint modulo_pk primary key,
  "strNombreModulo" text not null constraint modulo_nombre_unico unique
);

create table permisos_perfil (
  id integer generated always as identity constraint permisos_perfil_pk primary key,
  "idPerfil" integer not null
    constraint permisos_perfil_perfil_fk references perfil on delete cascade,
  "idModulo" integer not null
    constraint permisos_perfil_modulo_fk references modulo on delete cascade,
  "bitAgregar" boolean not null default false,
  "bitEditar" boolean not null default false,
  "bitConsulta" boolean not null default false,
  "bitEliminar" boolean not null default false,
  "bitDetalle" boolean not null default false,
  constraint permisos_perfil_unico unique ("idPerfil", "idModulo")
);
create index permisos_perfil_modulo on permisos_perfil ("idModulo");

create table usuario (
  id integer generated always as identity constraint usuario_pk primary key,
  "strNombreUsuario" text not null,
  "idPerfil" integer not null constraint usuario_perfil_fk references perfil,
  "strPwd" text not null,
  "strCorreo" text not null,
  "strNumeroCelular" text,
  "idEstadoUsuario" boolean not null default true,
  "imagenUrl" text
);
create unique index usuario_nombre_unico on usuario (fold_case("strNombreUsuario"));
create unique index usuario_correo_unico on usuario (fold_case("strCorreo"));
create index usuario_perfil on usuario ("idPerfil");

insert into modulo ("strNombreModulo") values ('USUARIO'), ('PERFIL'), ('MODULO'), ('PERMISOS');
