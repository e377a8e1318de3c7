-- Refuses the write when one of the profiles holds what the limit (see begin_write) does not.
create or replace function refuse_beyond(p_limit jsonb, p_perfiles integer[]) returns void
language plpgsql
as $$
begin
  if p_limit is not null and exists (
    select from unnest(p_perfiles) as perfiles (id) where (p_limit @> held_by(id)) is not true
  ) then
    perform refuse();
  end if;
end
$$;
