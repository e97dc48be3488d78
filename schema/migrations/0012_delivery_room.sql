-- The sliding minute of an endpoint over several processes. ADR 0104.

-- When a process went of itself; its row stays a while, for its attempts count on in the window.
alter table processes add column left_at timestamptz;

-- How many deliveries each endpoint may be sent now, as an upper bound for `delivery_claim`: what was
-- asked for, or what all processes together leave of the limit. A process that was alone for the last
-- two minutes knows its own attempts, and pays for nothing here. The locks, in one order, are held to
-- the end of the claim, so that two processes do not give away the same place.
create function delivery_room(
  p_endpoints text[], p_limits integer[], p_owner text, p_now timestamptz, p_per_minute integer
) returns integer[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
declare lock_key integer;
begin
  if not exists (
    select 1 from processes
    where id <> p_owner and greatest(heartbeat_at, left_at) > p_now - interval '2 minutes'
  ) then
    return p_limits;
  end if;
  for lock_key in select distinct hashtext(e) from unnest(p_endpoints) as w (e) order by 1 loop
    perform pg_advisory_xact_lock(811003, lock_key);
  end loop;
  return array(
    select least(w.most, greatest(0, p_per_minute - (
      select count(*)::integer from (
        select 1 from delivery_attempts a
        where a.endpoint_id = w.endpoint and a.started_at > p_now - interval '2 minutes'
          and (a.ended_at is null or a.ended_at > p_now - interval '1 minute')
        limit p_per_minute
      ) taken
    )))
    from unnest(p_endpoints, p_limits) with ordinality as w (endpoint, most, n) order by w.n
  );
end $$;
