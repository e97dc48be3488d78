-- What equal processes know of each other (docs/reference/processes.md).

-- Writes the heartbeat of a process, takes the duties that are due, and returns what may have changed: one statement,
-- so that a process without work sends no other.
-- `silent`: the oldest heartbeat of another process that is not dead yet. `waiting`: tasks wait for their next step.
-- `owns`: this process has tasks in hand. The last three name a state of catalogs, drained accounts and open faults.
create or replace function process_heartbeat(
  p_id text, p_now timestamptz, p_dead_seconds float8, p_duties text[], p_seconds float8[]
) returns table (
  at timestamptz, duties text[], silent timestamptz, waiting boolean, owns boolean, catalog text, drains text, faults text
) language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
begin
  insert into processes (id, started_at, heartbeat_at) values (p_id, p_now, p_now)
    on conflict (id) do update set heartbeat_at = excluded.heartbeat_at;
  return query select
    p_now,
    duties_take(p_id, p_now, p_duties, p_seconds),
    (select min(o.heartbeat_at) from processes o
      where o.id <> p_id and o.heartbeat_at >= p_now - make_interval(secs => p_dead_seconds)),
    exists (select from runs r where r.owner is null),
    exists (select from runs r where r.owner = p_id),
    (select coalesce(max(a.id), 0)::text from catalog_adoptions a),
    (select coalesce(string_agg(a.account_id || ' ' || a.since, ',' order by a.account_id), '') from account_drains a),
    (select coalesce(string_agg(f.key || ' ' || f.until, ',' order by f.key), '') from vendor_faults f);
end $$;

-- Takes the duties that no process has begun in the current interval of p_seconds each. One process at a time; the
-- others find the rest at their next heartbeat. An interval in the future was begun by a clock that was ahead.
create or replace function duties_take(p_process text, p_now timestamptz, p_names text[], p_seconds float8[])
returns text[] language plpgsql as $$
declare taken text[];
begin
  if not exists (
    select from unnest(p_names, p_seconds) as w (name, seconds)
    where not exists (
      select from duties d where d.name = w.name
        and d.begun_at between p_now - make_interval(secs => w.seconds) and p_now
        and floor(extract(epoch from d.begun_at) / w.seconds) = floor(extract(epoch from p_now) / w.seconds)
    )
  ) or not pg_try_advisory_xact_lock(811005) then
    return '{}';
  end if;
  with due as (
    select w.name from unnest(p_names, p_seconds) as w (name, seconds)
    where not exists (
      select from duties d where d.name = w.name
        and d.begun_at between p_now - make_interval(secs => w.seconds) and p_now
        and floor(extract(epoch from d.begun_at) / w.seconds) = floor(extract(epoch from p_now) / w.seconds)
    )
  ), written as (
    insert into duties (name, begun_at, process_id) select name, p_now, p_process from due
    on conflict (name) do update set begun_at = excluded.begun_at, process_id = excluded.process_id
    returning name
  )
  select coalesce(array_agg(name), '{}') into taken from written;
  return taken;
end $$;
