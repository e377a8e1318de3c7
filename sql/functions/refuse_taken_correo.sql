-- Takes the id of a user, null for a new one, and an email. Raises the unique violation of `strCorreo`
-- if another user has the email.
--
-- Acquires no locks. A write that changes an email holds lock_usuarios before it calls this function.
--
-- A write that repeats both the name and the email of another user would otherwise fail with the index
-- that PostgreSQL happens to check first. The contract (section 7) names the email.
create or replace function refuse_taken_correo(p_id integer, p_correo text) returns void
language plpgsql
as $$
begin
  if exists (
    select from usuario
    where fold_case("strCorreo") = fold_case(p_correo) and id is distinct from p_id
  ) then
    raise unique_violation using constraint = 'usuario_correo_unico';
  end if;
end
$$;
