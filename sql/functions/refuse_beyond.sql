-- Takes the ids of profiles, and the id of the profile that limits the write (`limite` of
-- begin_write). Raises LL403 if one of the profiles holds something that the limiting profile does
-- not hold. If `p_limite` is null, the write has no limit, and nothing is raised. All of these
-- profiles must be locked.
create or replace function refuse_beyond(p_perfiles integer[], p_limite integer) returns void
language plpgsql strict
as $$
begin
  perform refuse(needs_for(id, p_limite)) from unnest(p_perfiles) as id;
end
$$;
