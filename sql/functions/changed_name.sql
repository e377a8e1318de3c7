-- Takes the name of a field and two objects. Returns the name if the field has different values in
-- the two objects, and null if the values are equal. A missing field counts as null.
create or replace function changed_name(p_name text, p_antes jsonb, p_ahora jsonb)
returns text
language sql immutable
as $$
  select case
    when p_antes ->> p_name is distinct from p_ahora ->> p_name then p_name
  end;
$$;
