-- Refuses the write if one of the profiles holds something that the profile `p_limite` does not.
-- If `p_limite` is null, the write has no limit (see begin_write), and nothing is refused.
create or replace function refuse_beyond(p_perfiles integer[], p_limite integer) returns void
language plpgsql
as $$
declare
  v_id integer;
begin
  if p_limite is null then
    return;
  end if;
  foreach v_id in array p_perfiles loop
    continue when v_id = p_limite;
    if exists (select from beyond(v_id, p_limite)) then
      perform refuse();
    end if;
  end loop;
end
$$;
