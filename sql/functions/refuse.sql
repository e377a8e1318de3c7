-- Raises LL403, which means that the caller may not do this write. PostgreSQL then rolls back the
-- transaction.
--
-- Takes what the caller lacks, which becomes the `detail` of the error. If it is null, nothing is
-- raised. It is one of these:
-- - {modulo, accion}: this permission.
-- - {administrador: true}: an administrator's profile.
--
-- `perfil` is the id of the profile that holds more than the caller's, if the write is refused for
-- that.
create or replace function refuse(p_needs jsonb) returns void
language plpgsql strict
as $$
begin
  raise exception using errcode = 'LL403', message = 'not allowed', detail = p_needs;
end
$$;
