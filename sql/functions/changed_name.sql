-- Returns the name `p_name` of a field if its values in `p_antes` and in `p_ahora` differ, and null
-- if they do not. A missing field is the same as one that is null.
create or replace function changed_name(p_name text, p_antes jsonb, p_ahora jsonb) returns text
language sql immutable
as $$
  select case when p_antes ->> p_name is distinct from p_ahora ->> p_name then p_name end;
$$;
