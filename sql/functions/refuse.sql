-- Raises LL403, which means that the caller may not do this write. PostgreSQL then rolls back the
-- transaction.
--
-- Takes what the caller lacks, which becomes the `detail` of the error. If it is null, nothing is
-- raised. It is {modulo, accion} for a permission, or {administrador: true} for an administrator's
-- profile. If another profile holds more than the caller's, the key `perfil` has the id of that
-- profile.
create or replace function refuse(p_needs jsonb) returns void
language plpgsql strict
as $$
begin
  raise exception using errcode = 'LL403', message = 'not allowed', detail = p_needs;
end
$$;
