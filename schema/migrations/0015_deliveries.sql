-- A claim writes the queue, a record writes the log: an attempt's row is written once, when it has
-- ended. What is under way stands in the queue alone, with owner, number and start (ADR 0105).

delete from delivery_attempts a using delivery_queue q
where q.owner is not null and a.delivery_id = q.id and a.seq = q.seq and a.started_at = q.claimed_at;

-- What is under way, by endpoint: for the sliding minute, and for the sweep.
drop index delivery_queue_owner;
create index delivery_queue_claimed on delivery_queue (endpoint_id) where owner is not null;

-- Every attempt, also those under way.
create view attempts_and_claims as
select delivery_id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, remote_address
from delivery_attempts
union all
select id, seq, endpoint_id, due_at, claimed_at, null, null, null, null, null, null
from delivery_queue where owner is not null;

-- A delivery that is under way is `pending` in its own row: its claim says that it is `delivering`, and since
-- when. Whoever shows a delivery reads this view (ADR 0114).
update deliveries d set status = 'pending' from delivery_queue q
where q.owner is not null and d.id = q.id and d.created_at = q.created_at and d.status = 'delivering';

create view deliveries_and_claims as
select d.id, d.created_at, d.user_id, d.endpoint_id, d.event_id, d.event_created_at, d.event_type, d.task_id,
  case when q.owner is null then d.status else 'delivering' end as status, d.attempts,
  case when q.owner is null then d.updated_at else greatest(d.updated_at, q.claimed_at) end as updated_at,
  case when q.owner is null then q.due_at end as next_due_at
from deliveries d left join lateral (
  select c.owner, c.claimed_at, c.due_at from delivery_queue c where c.id = d.id offset 0
) q on true;

-- A delivery is inserted and updated once, by the record of its attempt: with half of each page left free
-- the new version lies beside the old one, and no index is written again.
alter table deliveries_default set (fillfactor = 50);

-- As before, and with that space in partitions of deliveries.
create or replace function day_partition(p_table text, p_column text, p_day date) returns boolean language plpgsql as $$
declare
  part text := p_table || '_' || to_char(p_day, 'YYYYMMDD');
  since timestamptz := p_day::timestamp at time zone 'UTC';
  until timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
begin
  if to_regclass(part) is not null then return false; end if;
  execute format('lock table %I in access exclusive mode', p_table);
  execute format(
    'create table %I (like %I including defaults including constraints) with (fillfactor = %s)',
    part, p_table, case p_table when 'deliveries' then 50 else 100 end);
  execute format(
    'with moved as (delete from %I where %I >= %L and %I < %L returning *) insert into %I select * from moved',
    p_table || '_default', p_column, since, p_column, until, part);
  execute format(
    'alter table %I attach partition %I for values from (%L) to (%L)', p_table, part, since, until);
  return true;
end $$;

-- The two functions below serve many rows with one statement, by plans that an empty queue cannot spoil
-- (ADR 0112): a table is only ever looked into by keys that are given before (`= any`, or a lateral
-- sub-select with `offset 0`), and sets of the batch are matched by hashing, never each with each.

-- Takes due deliveries of several endpoints at once, each endpoint's oldest first (architecture, rule 6).
create or replace function delivery_claim(p_endpoints text[], p_limits integer[], p_owner text, p_now timestamptz)
returns table (
  id text, created_at timestamptz, attempt integer, seq integer, due_at timestamptz, started_at timestamptz,
  body bytea, endpoint_id text, url text, secret bytea, previous_secret bytea, previous_secret_until timestamptz
) language plpgsql
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  with due as materialized (
    select q.*, e.id as endpoint_id, e.url, e.secret, e.previous_secret, e.previous_secret_until
    from unnest(p_endpoints, p_limits) as w (endpoint, most)
    cross join lateral (
      select e.id, e.url, e.secret, e.previous_secret, e.previous_secret_until, e.enabled
      from webhook_endpoints e where e.id = w.endpoint and e.deleted_at is null offset 0
    ) e
    cross join lateral (
      -- A range of one and its order: only the endpoint's own index fits, never the one on due_at alone.
      select q.id, q.created_at, q.attempt, q.seq + 1 as seq, q.due_at from delivery_queue q
      where q.endpoint_id >= e.id and q.endpoint_id <= e.id and q.owner is null and q.due_at <= p_now
        and (e.enabled or q.manual)
      order by q.endpoint_id, q.due_at limit w.most for update skip locked
    ) q
  ), claimed as (
    update delivery_queue q set owner = p_owner, claimed_at = p_now, seq = q.seq + 1
    where q.id = any (array(select id from due))
  )
  select due.id, due.created_at, due.attempt, due.seq, due.due_at, p_now, e.body, due.endpoint_id,
    due.url, due.secret, due.previous_secret, due.previous_secret_until
  from due
  cross join lateral (
    select d.event_id, d.event_created_at from deliveries d
    where d.id = due.id and d.created_at = due.created_at offset 0
  ) d
  cross join lateral (
    select e.body from events e where e.id = d.event_id and e.created_at = d.event_created_at offset 0
  ) e
  order by due.due_at, due.id;
end $$;

-- Completes attempts: done, or due again. An endpoint that was disabled or deleted meanwhile gets no
-- further attempt: its delivery is skipped, unless it was sent by hand. A claim that was taken over
-- (its seq has moved on) changes nothing but the row of its own attempt, which the sweep has written;
-- nor does a failure that is told again, because the answer to the first time was lost.
create or replace function delivery_record(
  p_ids text[], p_created timestamptz[], p_seqs integer[], p_started timestamptz[], p_ended timestamptz[],
  p_next timestamptz[], p_attempts integer[], p_statuses integer[], p_failures text[], p_details text[],
  p_answers text[], p_addresses text[]
) returns void language plpgsql
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
declare written integer;
begin
  with ended as materialized (
    select r.*, q.endpoint_id, q.due_at, case
      when r.failure is null then 'succeeded'
      when r.next_at is null then 'failed'
      when e.enabled or (q.manual and e.deleted_at is null) then 'pending'
      else 'skipped'
    end as fate
    from (
      select distinct on (r.id, r.seq) * from unnest(
        p_ids, p_created, p_seqs, p_started, p_ended, p_next, p_attempts, p_statuses, p_failures, p_details,
        p_answers, p_addresses
      ) as r (
        id, created_at, seq, started_at, ended_at, next_at, attempt, status, failure, detail, answer, address)
    ) r
    cross join lateral (
      select q.endpoint_id, q.due_at, q.manual from delivery_queue q
      where q.id = r.id and q.seq = r.seq
        and (q.owner is not null or q.attempt < r.attempt or r.failure is null)
      offset 0 for update
    ) q
    cross join lateral (
      select e.enabled, e.deleted_at from webhook_endpoints e where e.id = q.endpoint_id offset 0
    ) e
  ), gone as (
    delete from delivery_queue q where q.id = any (array(select id from ended where fate <> 'pending'))
  ), back as (
    update delivery_queue q set owner = null, due_at = n.next_at, attempt = n.attempt
    from ended n where n.id = q.id and q.id = any (array(select id from ended where fate = 'pending'))
  ), moved as (
    update deliveries d set status = n.fate, updated_at = n.ended_at,
      attempts = d.attempts + case when n.failure = 'lost' then 0 else 1 end
    from ended n where n.id = d.id and d.id = any (array(select id from ended))
      and d.created_at between (select min(created_at) from ended) and (select max(created_at) from ended)
  )
  insert into delivery_attempts
    (delivery_id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, remote_address)
  select id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, address from ended
  -- A sweep called it lost
  on conflict (delivery_id, seq, started_at) do update set ended_at = excluded.ended_at, status = excluded.status,
    failure = excluded.failure, detail = excluded.detail, answer = excluded.answer,
    remote_address = excluded.remote_address;
  get diagnostics written = row_count;
  if written = cardinality(p_ids) then return; end if;
  update delivery_attempts a set ended_at = r.ended_at, status = r.status, failure = r.failure,
    detail = r.detail, answer = r.answer, remote_address = r.address
  from unnest(
    p_ids, p_seqs, p_started, p_ended, p_statuses, p_failures, p_details, p_answers, p_addresses
  ) as r (id, seq, started_at, ended_at, status, failure, detail, answer, address)
  where a.delivery_id = any (p_ids) and a.started_at = any (p_started)
    and a.delivery_id = r.id and a.seq = r.seq and a.started_at = r.started_at;
end $$;

-- Attempts whose process died, or that nobody has ended long after their bound, are `lost` and due
-- again at once, uncounted (ADR 0003). Answers how many.
create or replace function delivery_free(
  p_alive_since timestamptz, p_claimed_before timestamptz, p_now timestamptz
) returns integer language sql as $$
  with dead as materialized (
    select q.id, q.seq, q.created_at, q.endpoint_id, q.due_at, q.claimed_at,
      e.enabled or (q.manual and e.deleted_at is null) as goes_on
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
    insert into delivery_attempts (delivery_id, seq, endpoint_id, due_at, started_at, ended_at, failure, detail)
    select id, seq, endpoint_id, due_at, claimed_at, p_now, 'lost', 'the process ended during this attempt' from dead
    on conflict do nothing
  )
  select count(*)::integer from dead
$$;

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
        select 1 from attempts_and_claims a
        where a.endpoint_id = w.endpoint and a.started_at > p_now - interval '2 minutes'
          and (a.ended_at is null or a.ended_at > p_now - interval '1 minute')
        limit p_per_minute
      ) taken
    )))
    from unnest(p_endpoints, p_limits) with ordinality as w (endpoint, most, n) order by w.n
  );
end $$;
