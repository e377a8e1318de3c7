-- Returns [p_antes, p_ahora] if the two values differ, and null if they do not.
create or replace function changed_pair(p_antes jsonb, p_ahora jsonb) returns jsonb
language sql stable
as $$
  select case when p_antes is distinct from p_ahora then jsonb_build_array(p_antes, p_ahora) end;
$$;
