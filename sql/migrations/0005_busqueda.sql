-- Finds a text inside of names without reading them all. The extension is a contributed one: where
-- it can't be had, or this user may not create it, searching works all the same and reads them all.
do $$
begin
  create extension if not exists pg_trgm;
  create index perfil_nombre_trgm on perfil using gin (fold_case("strNombrePerfil") gin_trgm_ops);
  create index modulo_nombre_trgm on modulo using gin (fold_case("strNombreModulo") gin_trgm_ops);
  create index usuario_nombre_trgm on usuario using gin (fold_case("strNombreUsuario") gin_trgm_ops);
  create index usuario_correo_trgm on usuario using gin (fold_case("strCorreo") gin_trgm_ops);
exception when
  insufficient_privilege or feature_not_supported or undefined_file or undefined_object
then
  raise notice 'searching without pg_trgm: %', sqlerrm;
end
$$;
