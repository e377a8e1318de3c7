-- Tokens carry the version they were issued under: raising it ends all that a user has.
alter table usuario add column "versionSesion" integer not null default 0;
