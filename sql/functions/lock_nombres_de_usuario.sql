-- Acquires the advisory lock of a write that adds a user or changes a user's name or email. Without
-- it, two transactions that exchange the names of two users could deadlock in the unique index.
create or replace function lock_nombres_de_usuario() returns void
language sql
as $$
  select pg_advisory_xact_lock(7305511407);
$$;
