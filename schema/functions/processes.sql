-- What processes know about each other (docs/reference/processes.md).

-- Writes the heartbeat of a process, takes the duties that are due, and returns what may have changed, all in one
-- statement, so that an idle process sends no other statement. `advance`: the progress of the process, one more than
-- before. Nothing is written for a process while the store is behind p_seen, the highest number that the process knows:
-- the store went back in time (store_mark_restored ends that state). `timeline`: the server's timeline, 0 if unknown.
-- `moved`: this heartbeat is the first that finds the timeline changed. `silent`: the oldest heartbeat of another
-- process that is not dead yet. `waiting`: tasks wait for their next step. `owns`: this process has tasks in hand. The
-- last three values identify the state of catalogs, drained accounts and open faults.
create or replace function process_heartbeat(
  p_id text, p_now timestamptz, p_dead_seconds float8, p_duties text[], p_seconds float8[], p_seen bigint
) returns table (
  at timestamptz, advance float8, timeline integer, moved boolean, duties text[], silent timestamptz, waiting boolean,
  owns boolean, catalog text, drains text, faults text
) language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  reached bigint;
  current_timeline integer := server_timeline();
  has_moved boolean := false;
begin
  insert into processes as p (id, started_at, heartbeat_at, advance)
    values (p_id, p_now, p_now, case when p_seen = 0 then 1 else 0 end)
    on conflict (id) do update set
      heartbeat_at = case when p.advance >= p_seen then excluded.heartbeat_at else p.heartbeat_at end,
      advance = p.advance + case when p.advance >= p_seen then 1 else 0 end
    returning p.advance into reached;
  if current_timeline > 0 and not exists (select from store_timeline t where t.timeline = current_timeline) then
    has_moved := exists (select from store_timeline);
    insert into store_timeline (timeline, since)
      values (current_timeline, case when has_moved then p_now else '-infinity' end)
      on conflict (only_row) do update set timeline = excluded.timeline, since = excluded.since;
  end if;
  return query select
    p_now,
    reached::float8,
    current_timeline,
    has_moved,
    duties_take(p_id, p_now, p_duties, p_seconds),
    (select min(o.heartbeat_at) from processes o
      where o.id <> p_id and o.heartbeat_at >= p_now - make_interval(secs => p_dead_seconds)),
    exists (select from runs r where r.owner is null),
    exists (select from runs r where r.owner = p_id),
    (select coalesce(max(a.id), 0)::text from catalog_adoptions a),
    (select coalesce(string_agg(a.account_id || ' ' || a.since, ',' order by a.account_id), '') from account_drains a),
    (select coalesce(string_agg(f.key || ' ' || f.until, ',' order by f.key), '') from vendor_faults f);
end $$;

-- The server's timeline; 0 if unknown.
create or replace function server_timeline() returns integer language plpgsql as $$
begin
  return ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;
exception when others then
  return 0;
end $$;

-- Writes a megabyte and rolls it back. Fails as other writes do while the server lacks disk or memory. A heartbeat does
-- not show that, because it needs no new space.
create or replace function store_try_write() returns void language plpgsql as $$
begin
  execute 'create temporary table store_try_write (words text)';
  execute 'insert into store_try_write select repeat(md5(n::text), 30) from generate_series(1, 1000) n';
  raise exception 'undone' using errcode = 'U0001';
exception when sqlstate 'U0001' then null;
end $$;

-- Whether a process may begin paid submits: the store is not behind the progress that the process knows, and its
-- timeline has not changed within p_settle_seconds. In that time every live process writes a heartbeat, so a process
-- that knows more than the new primary will have marked the store.
create or replace function store_is_trusted(p_process text, p_seen bigint, p_now timestamptz, p_settle_seconds float8)
returns boolean language plpgsql as $$
declare t store_timeline;
begin
  if not exists (select from processes p where p.id = p_process and p.advance >= p_seen) then return false; end if;
  select * into t from store_timeline;
  return t.timeline is null
    or t.timeline = server_timeline() and t.since <= p_now - make_interval(secs => p_settle_seconds);
end $$;

-- Marks a store that went back in time (docs/standbys.md), and raises the progress of p_process to p_advance. From then
-- on
-- - no step in hand can write anything: all unfinished tasks lose their owner, and their epochs are raised beyond those
--   of the lost time;
-- - a task without a submit, or whose last submit was refused, is in doubt, unless p_allows_submits;
-- - open holds of calls and reservations belong to no process, so that the next rescue ends them.
-- One mark serves all processes: if there is a mark since p_since, the last heartbeat of p_process before it found the
-- store behind, nothing is written and no row is returned.
create or replace function store_mark_restored(
  p_by text, p_now timestamptz, p_allows_submits boolean, p_process text, p_advance bigint, p_since timestamptz
) returns table (restored_at timestamptz, trusted_until timestamptz, tasks_in_doubt integer, holds_ended integer)
language plpgsql as $$
#variable_conflict use_column
declare
  newest timestamptz;
  doubted integer;
  ended integer;
begin
  perform pg_advisory_xact_lock(811007);
  if not exists (select from store_marks m where m.restored_at > p_since) then
    perform from wallets w where w.user_id = any (array(select h.user_id from holds h))
      order by w.user_id for no key update;
    select max(greatest(p.heartbeat_at, p.left_at)) into newest from processes p
      where p_since is null or p.heartbeat_at <= p_since;
    update runs r set owner = null, epoch = r.epoch + 1000000, in_doubt = not p_allows_submits and not exists (
      select from vendor_attempts v
      where v.task_id = r.task_id and v.n = r.attempt and v.state <> 'refused' and length(v.body_hash) > 0);
    -- Earlier searches no longer prove anything, including one that is running now.
    update vendor_attempts v set state = 'refused', body_hash = '\x00',
      failure = coalesce(v.failure, 'RETRYABLE: The search for the job was restarted')
      from runs r
      where v.task_id = r.task_id and length(v.body_hash) = 0 and v.state in ('refused', 'submitting');
    select count(*) into doubted from runs r where r.in_doubt;
    update holds h set process_id = '' where h.kind in ('call', 'reservation');
    get diagnostics ended = row_count;
    insert into store_marks values (p_now, newest, p_by, doubted) on conflict (restored_at) do nothing;
    return query select p_now, newest, doubted, ended;
  end if;
  update processes p set advance = greatest(p.advance, p_advance), heartbeat_at = p_now where p.id = p_process;
end $$;

-- Takes duties that no process has begun in the current interval of p_seconds each. One process at a time; the others
-- find the remaining duties at their next heartbeat. An interval that begins in the future was begun by a fast clock.
create or replace function duties_take(p_process text, p_now timestamptz, p_names text[], p_seconds float8[])
returns text[] language plpgsql as $$
declare taken text[];
begin
  if not exists (
    select from unnest(p_names, p_seconds) as w (name, seconds)
    where not exists (
      select from duties d where d.name = w.name
        and floor(extract(epoch from d.begun_at) / w.seconds) = floor(extract(epoch from p_now) / w.seconds)
    )
  ) or not pg_try_advisory_xact_lock(811005) then
    return '{}';
  end if;
  with due as (
    select w.name from unnest(p_names, p_seconds) as w (name, seconds)
    where not exists (
      select from duties d where d.name = w.name
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
