-- Acquires the advisory lock of a transaction that renames or deletes a module. The lock is
-- exclusive: while a transaction holds it, no other transaction can hold it or share_modulos. It is
-- held until the transaction ends. So no other transaction adds or overwrites permission records
-- meanwhile.
create or replace function lock_modulos() returns void
language sql
as $$
  select pg_advisory_xact_lock(modulos_key());
$$;
