-- Webhooks: the owner's own wish to send again, the log's indexes, batches, and day partitions.

-- Sent again by hand: goes out even while the endpoint is disabled (contract 8).
alter table delivery_queue add column manual boolean not null default false;

-- For the log of one endpoint and for `recover`.
create index deliveries_endpoint on deliveries (endpoint_id, id desc);

-- The millisecond that a time-sorted id begins with, after its prefix: the row's created_at.
create function id_time(p_id text, p_prefix text) returns timestamptz language sql immutable as $$
  select timestamptz 'epoch' + interval '1 millisecond'
    * (('x' || lpad(substr(p_id, length(p_prefix) + 1, 12), 16, '0'))::bit(64)::bigint)
$$;

-- Takes due deliveries of several endpoints at once, each endpoint's oldest first, and records their
-- attempts as begun (architecture, rule 6). The planner is told what suits a queue: few rows by index.
create function delivery_claim(p_endpoints text[], p_limits integer[], p_owner text, p_now timestamptz)
returns table (
  id text, created_at timestamptz, attempt integer, seq integer, due_at timestamptz, started_at timestamptz,
  body bytea, endpoint_id text, url text, secret bytea, previous_secret bytea, previous_secret_until timestamptz
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  with target as materialized (
    select e.id, e.url, e.secret, e.previous_secret, e.previous_secret_until, e.enabled, w.most
    from unnest(p_endpoints, p_limits) as w (endpoint, most)
    join webhook_endpoints e on e.id = w.endpoint and e.deleted_at is null
  ), due as materialized (
    select d.id from target t cross join lateral (
      select q.id from delivery_queue q
      where q.endpoint_id = t.id and q.owner is null and q.due_at <= p_now and (t.enabled or q.manual)
      order by q.due_at limit t.most for update skip locked
    ) d
  ), claimed as (
    update delivery_queue q set owner = p_owner, claimed_at = p_now, seq = q.seq + 1
    from due where q.id = due.id
    returning q.id, q.created_at, q.endpoint_id, q.attempt, q.seq, q.due_at
  ), logged as (
    insert into delivery_attempts (delivery_id, seq, endpoint_id, due_at, started_at)
    select c.id, c.seq, c.endpoint_id, c.due_at, p_now from claimed c
  ), moved as (
    update deliveries d set status = 'delivering', updated_at = p_now
    from claimed c where d.id = c.id and d.created_at = c.created_at
    returning d.id, d.event_id, d.event_created_at
  )
  select c.id, c.created_at, c.attempt, c.seq, c.due_at, p_now, e.body, c.endpoint_id,
    t.url, t.secret, t.previous_secret, t.previous_secret_until
  from claimed c
  join moved m on m.id = c.id
  join events e on e.id = m.event_id and e.created_at = m.event_created_at
  join target t on t.id = c.endpoint_id
  order by c.due_at, c.id;
end $$;

-- Completes attempts: done, or due again. An endpoint that was disabled or deleted meanwhile gets no
-- further attempt: its delivery is skipped, unless it was sent by hand. A claim that was taken over
-- (its seq has moved on) changes nothing but the row of its own attempt.
create function delivery_record(
  p_ids text[], p_created timestamptz[], p_seqs integer[], p_started timestamptz[], p_ended timestamptz[],
  p_next timestamptz[], p_attempts integer[], p_statuses integer[], p_failures text[], p_details text[],
  p_answers text[], p_addresses text[]
) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
begin
  with r as materialized (
    select * from unnest(
      p_ids, p_created, p_seqs, p_started, p_ended, p_next, p_attempts, p_statuses, p_failures, p_details,
      p_answers, p_addresses
    ) as r (
      id, created_at, seq, started_at, ended_at, next_at, attempt, status, failure, detail, answer, address)
  ), fate as materialized (
    select r.id, r.created_at, r.seq, r.ended_at, r.next_at, r.attempt,
      case when r.failure = 'lost' then 0 else 1 end as counted,
      case
        when r.failure is null then 'succeeded'
        when r.next_at is null then 'failed'
        when q.manual and e.deleted_at is null or e.enabled then 'pending'
        else 'skipped'
      end as status
    from r
    join delivery_queue q on q.id = r.id and q.seq = r.seq
    join webhook_endpoints e on e.id = q.endpoint_id
  ), gone as (
    delete from delivery_queue q using fate f
    where q.id = f.id and q.seq = f.seq and f.status <> 'pending' returning q.id
  ), back as (
    update delivery_queue q set owner = null, due_at = f.next_at, attempt = f.attempt
    from fate f where q.id = f.id and q.seq = f.seq and f.status = 'pending' returning q.id
  ), moved as (
    update deliveries d set status = f.status, attempts = d.attempts + f.counted, updated_at = f.ended_at
    from fate f join (select g.id from gone g union all select b.id from back b) mine on mine.id = f.id
    where d.id = f.id and d.created_at = f.created_at
  )
  update delivery_attempts a set ended_at = r.ended_at, status = r.status, failure = r.failure,
    detail = r.detail, answer = r.answer, remote_address = r.address
  from r where a.delivery_id = r.id and a.seq = r.seq and a.started_at = r.started_at;
end $$;

-- Attempts whose process died, or that nobody has ended long after their bound, are `lost` and due
-- again at once, uncounted (ADR 0003). Answers how many.
create function delivery_free(p_alive_since timestamptz, p_claimed_before timestamptz, p_now timestamptz)
returns integer language sql as $$
  with dead as materialized (
    select q.id, q.seq, q.created_at, q.claimed_at, e.enabled or (q.manual and e.deleted_at is null) as goes_on
    from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id
    where q.owner is not null and (
      q.claimed_at < p_claimed_before
      or not exists (select 1 from processes p where p.id = q.owner and p.heartbeat_at >= p_alive_since))
    for update of q skip locked
  ), freed as (
    update delivery_queue q set owner = null, due_at = p_now from dead where q.id = dead.id and dead.goes_on
  ), gone as (
    delete from delivery_queue q using dead where q.id = dead.id and not dead.goes_on
  ), moved as (
    update deliveries d set status = case when dead.goes_on then 'pending' else 'skipped' end, updated_at = p_now
    from dead where d.id = dead.id and d.created_at = dead.created_at
  ), logged as (
    update delivery_attempts a set ended_at = p_now, failure = 'lost',
      detail = 'the process ended during this attempt'
    from dead where a.delivery_id = dead.id and a.seq = dead.seq and a.started_at = dead.claimed_at
  )
  select count(*)::integer from dead
$$;

-- Queues finished deliveries again, under the same id and with a fresh schedule; their attempts go on
-- being counted in the log. Answers the endpoints to wake.
create function delivery_requeue(p_ids text[], p_now timestamptz) returns text[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
declare woken text[];
begin
  with wanted as materialized (
    select i.id, id_time(i.id, 'whd_') as created_at,
      coalesce((select max(a.seq) from delivery_attempts a where a.delivery_id = i.id), 0) as seq
    from unnest(p_ids) as i (id)
  ), again as (
    insert into delivery_queue (id, created_at, endpoint_id, due_at, seq, manual)
    select d.id, d.created_at, d.endpoint_id, p_now, w.seq, true
    from wanted w join deliveries d on d.id = w.id and d.created_at = w.created_at
    on conflict (id) do update set due_at = excluded.due_at, manual = true where delivery_queue.owner is null
    returning id, created_at, endpoint_id
  ), moved as (
    update deliveries d set status = 'pending', updated_at = p_now
    from again where d.id = again.id and d.created_at = again.created_at
  )
  select coalesce(array_agg(distinct endpoint_id), '{}') into woken from again;
  return woken;
end $$;

-- Makes the day partition of one table. Rows of that day that lie in the default partition (the
-- service was down when the day began) move into it; the table is locked meanwhile, so that no
-- update misses a row on its way.
create function day_partition(p_table text, p_column text, p_day date) returns boolean language plpgsql as $$
declare
  part text := p_table || '_' || to_char(p_day, 'YYYYMMDD');
  since timestamptz := p_day::timestamp at time zone 'UTC';
  until timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
begin
  if to_regclass(part) is not null then return false; end if;
  execute format('lock table %I in access exclusive mode', p_table);
  execute format('create table %I (like %I including defaults including constraints)', part, p_table);
  execute format(
    'with moved as (delete from %I where %I >= %L and %I < %L returning *) insert into %I select * from moved',
    p_table || '_default', p_column, since, p_column, until, part);
  execute format(
    'alter table %I attach partition %I for values from (%L) to (%L)', p_table, part, since, until);
  return true;
end $$;

-- Partitions from today to p_days ahead, and none that ended before p_keep_since. Old rows of the
-- default partition go too, and what still waits for a delivery that is gone.
create function partitions_keep(
  p_now timestamptz, p_days integer, p_keep_since timestamptz, out made integer, out dropped integer
) language plpgsql as $$
declare
  kept record;
  part record;
  today date := (p_now at time zone 'UTC')::date;
begin
  perform set_config('lock_timeout', '5s', true);
  made := 0;
  dropped := 0;
  for kept in
    select * from (values ('events', 'created_at'), ('deliveries', 'created_at'), ('delivery_attempts', 'started_at'))
      as t (name, key)
  loop
    for n in 0..p_days loop
      if day_partition(kept.name, kept.key, today + n) then made := made + 1; end if;
    end loop;
    for part in
      select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = kept.name::regclass and c.relname ~ ('^' || kept.name || '_\d{8}$')
        and (to_date(right(c.relname::text, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= p_keep_since
    loop
      execute format('drop table %I', part.name);
      dropped := dropped + 1;
    end loop;
    execute format('delete from %I where %I < %L', kept.name || '_default', kept.key, p_keep_since);
  end loop;
  if dropped > 0 then
    delete from delivery_queue q
      where not exists (select 1 from deliveries d where d.id = q.id and d.created_at = q.created_at);
  end if;
end $$;
