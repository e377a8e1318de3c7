-- Takes two values. Returns the array [p_antes, p_ahora] if they differ, and null if they are
-- equal.
create or replace function changed_pair(p_antes jsonb, p_ahora jsonb) returns jsonb
language sql stable
as $$
  select case
    when p_antes is distinct from p_ahora then jsonb_build_array(p_antes, p_ahora)
  end;
$$;
