-- Takes a row of the table `perfil`. Returns the profile in the form of the contract (section 2.2).
create or replace function perfil_data(p_perfil perfil) returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'id', p_perfil.id,
    'strNombrePerfil', p_perfil."strNombrePerfil",
    'bitAdministrador', p_perfil."bitAdministrador"
  );
$$;
