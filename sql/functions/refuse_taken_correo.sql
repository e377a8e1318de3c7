-- Takes the id of a user, which is null for a new user, and an email. Raises the unique violation
-- of `strCorreo` if another user has the email.
--
-- The trigger prepare_usuario calls it while it holds the lock of names and emails.
-- ensure_administrador also calls it before that, without the lock.
--
-- The unique indexes alone would not suffice. If both the name and the email are taken, PostgreSQL
-- reports the index that it happens to check first. The client gets the error for the email, which
-- the contract (section 7) names as its example of a violated constraint.
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
