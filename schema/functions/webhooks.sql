-- Events, deliveries and their queue.
--
-- delivery_claim and delivery_record change many rows in one statement. Their plans stay good even if they are made
-- while the queue is empty (ADR 0112): a table is read only by keys that are known beforehand (`= any`, or a lateral
-- subselect with `offset 0`), and sets of the batch are joined by hash, never by nested loop.

-- A new id that starts with the time in milliseconds.
create or replace function time_sorted_id(p_prefix text, p_now timestamptz) returns text language sql as $$
  select p_prefix || lpad(to_hex(floor(extract(epoch from p_now) * 1000)::bigint), 12, '0')
    || right(replace(gen_random_uuid()::text, '-', ''), 20)
$$;

-- The time at the start of a time-sorted id, which is the row's created_at.
create or replace function id_time(p_id text, p_prefix text) returns timestamptz language sql immutable as $$
  select timestamptz 'epoch' + interval '1 millisecond'
    * (('x' || lpad(substr(p_id, length(p_prefix) + 1, 12), 16, '0'))::bit(64)::bigint)
$$;

-- Inserts events, given as one array element per event, and their deliveries, which are due now. An event goes to each
-- enabled endpoint that subscribes to it and whose filter accepts the task (p_models has the name in the task's path,
-- null for other events; p_lists has the models that the requests of a vendor's batch name, if there are several),
-- except p_except, and to the task's own webhook (p_hooks) if it requests the event. Endpoints and webhooks of the
-- format `openai` get OpenAI's version of the event (p_openai), under its type, if there is one.
-- Returns the endpoints to notify after the commit. In plpgsql, so that its plans are kept.
-- docs/reference/webhooks.md#delivery
create or replace function events_publish(
  p_ids text[], p_users uuid[], p_types text[], p_tasks uuid[], p_bodies bytea[], p_traces text[],
  p_times timestamptz[], p_models text[], p_metadata jsonb[], p_hooks jsonb[], p_except text default null,
  p_openai jsonb[] default null, p_lists jsonb[] default null
) returns table (task_id uuid, endpoints text[]) language plpgsql as $$
#variable_conflict use_column
declare
  places bigint[];
  hooks text[];
  urls text[];
  types text[];
  own record;
begin
  insert into events (id, created_at, user_id, type, task_id, body, trace_id, openai)
    select * from unnest(p_ids, p_times, p_users, p_types, p_tasks, p_bodies, p_traces, p_openai);
  select array_agg(e.place), array_agg(o.id), array_agg(null::text), array_agg(o.type) into places, hooks, urls, types
    from unnest(p_users, p_types, p_models, p_metadata, p_openai, p_lists) with ordinality
      as e (user_id, type, model, metadata, openai, list, place)
    cross join lateral (
      select o.id, case o.format when 'openai' then coalesce(e.openai ->> 'type', e.type) else e.type end as type
      from webhook_endpoints o
      where o.user_id = e.user_id and o.enabled and o.deleted_at is null and not o.of_tasks
        and (e.type = any (o.events) or (o.format = 'openai' and e.openai ->> 'type' = any (o.events)))
        and o.id is distinct from p_except
        and (o.filter is null or e.model is null or (
          (o.filter -> 'models' is null or o.filter -> 'models' ? e.model
            or o.filter -> 'models' ?| array(select jsonb_array_elements_text(e.list)))
          and (o.filter -> 'metadata' is null or coalesce(e.metadata, '{}') @> (o.filter -> 'metadata'))))
      offset 0
    ) o;
  if array_remove(p_hooks, null) <> '{}' then
    for own in select * from task_webhooks_address(p_users, p_types, p_hooks, p_times, p_openai) loop
      places := array_append(places, own.place);
      hooks := array_append(hooks, own.endpoint);
      urls := array_append(urls, own.url);
      types := array_append(types, own.type);
    end loop;
  end if;
  if hooks is null then
    return query select task, '{}'::text[] from unnest(p_tasks) task;
    return;
  end if;
  with made as (
    select time_sorted_id('whd_', p_times[place]) as id, hook, url, type, place
    from unnest(places, hooks, urls, types) as h (place, hook, url, type)
  ), written as (
    insert into deliveries (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, task_id, status,
      updated_at, webhook_url)
    select id, p_times[place], p_users[place], hook, p_ids[place], p_times[place], type, p_tasks[place],
      'pending', p_times[place], url
    from made
  )
  insert into delivery_queue (id, created_at, endpoint_id, due_at)
    select id, p_times[place], hook, p_times[place] from made;
  return query
    select e.task, coalesce(h.endpoints, '{}')
    from unnest(p_tasks) with ordinality as e (task, place)
    left join (
      select place, array_agg(hook) as endpoints from unnest(places, hooks) as h (place, hook) group by place
    ) h on h.place = e.place;
end $$;

-- The endpoints and URLs of these events' task webhooks. Such an endpoint carries the limits for the user's task
-- webhooks at one origin and is created with the first of them; the URL is the task's own. The endpoint's time is
-- written once an hour, which is enough for its removal (task_webhooks_remove).
create or replace function task_webhooks_address(
  p_users uuid[], p_types text[], p_hooks jsonb[], p_times timestamptz[], p_openai jsonb[]
) returns table (place bigint, endpoint text, url text, type text) language plpgsql as $$
#variable_conflict use_column
begin
  insert into webhook_endpoints as w (id, user_id, url, events, enabled, of_tasks, created_at, updated_at)
    select time_sorted_id('whe_', max(h.at)), h.user_id, h.hook ->> 'origin', '{}', true, true, max(h.at), max(h.at)
    from unnest(p_users, p_types, p_hooks, p_times, p_openai) as h (user_id, type, hook, at, openai)
    where task_webhook_type(h.hook, h.type, h.openai) is not null
      and exists (select from users u where u.id = h.user_id and u.deleted_at is null)
      and not exists (
      select from webhook_endpoints o
      where o.user_id = h.user_id and o.url = h.hook ->> 'origin' and o.of_tasks and o.deleted_at is null
        and o.updated_at > h.at - interval '1 hour')
    group by h.user_id, h.hook ->> 'origin' order by 2, 3
  on conflict (user_id, url) where deleted_at is null and of_tasks do update set updated_at = excluded.updated_at;
  return query
    select h.place, o.id, h.hook ->> 'url', task_webhook_type(h.hook, h.type, h.openai)
    from unnest(p_users, p_types, p_hooks, p_openai) with ordinality as h (user_id, type, hook, openai, place)
    cross join lateral (
      select o.id from webhook_endpoints o
      where o.user_id = h.user_id and o.url = h.hook ->> 'origin' and o.of_tasks and o.deleted_at is null offset 0
    ) o
    where task_webhook_type(h.hook, h.type, h.openai) is not null;
end $$;

-- The type under which a task's webhook gets an event; null if it does not request the event.
create or replace function task_webhook_type(p_hook jsonb, p_type text, p_openai jsonb) returns text
language sql immutable as $$
  select case
    when p_hook ->> 'format' = 'openai' and p_openai is not null then
      case when p_hook -> 'events' ?| array[p_type, p_openai ->> 'type'] then p_openai ->> 'type' end
    when p_hook -> 'events' ? p_type then p_type
  end
$$;

-- Removes endpoints of task webhooks that have no delivery left in the log and were last used before p_unused_since,
-- which is at least a day ago.
create or replace function task_webhooks_remove(p_unused_since timestamptz) returns void language plpgsql
set enable_seqscan = off as $$
begin
  delete from webhook_endpoints e
  where e.of_tasks and e.updated_at < p_unused_since
    and not exists (select from delivery_queue q where q.endpoint_id = e.id)
    and not exists (select from deliveries d where d.endpoint_id = e.id);
end $$;

-- Inserts one event and its deliveries.
create or replace function event_publish(
  p_id text, p_user uuid, p_type text, p_task uuid, p_body bytea, p_trace text, p_now timestamptz,
  out endpoints text[]
) language plpgsql as $$
begin
  select e.endpoints into event_publish.endpoints from events_publish(
    array[p_id], array[p_user], array[p_type], array[p_task], array[p_body], array[p_trace], array[p_now],
    array[null::text], array[null::jsonb], array[null::jsonb]) e;
end $$;

-- Notifies the user's other endpoints that this endpoint has been failing since then; only once until an attempt
-- succeeds. Returns the endpoints to notify. docs/reference/webhooks.md#failing-endpoints
create or replace function endpoint_failing_publish(
  p_endpoint text, p_failing_since timestamptz, p_id text, p_body bytea, p_now timestamptz, out endpoints text[]
) language plpgsql as $$
declare owner uuid;
begin
  update webhook_endpoints e set failing_told = true
    where e.id = p_endpoint and e.failing_since = p_failing_since and not e.failing_told and e.enabled
    returning e.user_id into owner;
  if owner is null then
    endpoints := '{}';
    return;
  end if;
  select e.endpoints into endpoint_failing_publish.endpoints from events_publish(
    array[p_id], array[owner], array['webhook.failing'], array[null::uuid], array[p_body], array[null::text],
    array[p_now], array[null::text], array[null::jsonb], array[null::jsonb], p_endpoint) e;
end $$;

-- Publishes key.expiring, once per expiry time of the key. Returns the endpoints to notify.
create or replace function key_expiring_publish(
  p_key text, p_expires timestamptz, p_id text, p_body bytea, p_now timestamptz, out endpoints text[]
) language plpgsql as $$
declare owner uuid;
begin
  update api_keys k set expiring_told = k.expires_at
    where k.id = p_key and k.expires_at = p_expires and k.revoked_at is null and k.disabled_at is null
      and k.expiring_told is distinct from k.expires_at
    returning k.user_id into owner;
  if owner is null then
    endpoints := '{}';
    return;
  end if;
  select e.endpoints into key_expiring_publish.endpoints from events_publish(
    array[p_id], array[owner], array['key.expiring'], array[null::uuid], array[p_body], array[null::text],
    array[p_now], array[null::text], array[null::jsonb], array[null::jsonb]) e;
end $$;

-- The bytes that a delivery of this type sends.
create or replace function event_body(p_body bytea, p_openai jsonb, p_type text) returns bytea
language sql immutable as $$
  select case when p_openai ->> 'type' = p_type then convert_to(p_openai ->> 'body', 'UTF8') else p_body end
$$;

-- How many deliveries each endpoint may get now, as the upper bound for delivery_claim: the requested number or, if
-- lower, what all processes together leave of the rate limit and of the concurrent attempts (ADR 0104). A process that
-- was alone for the last two minutes knows its own attempts, and reads nothing here. The locks are taken in one order
-- and kept until the claim is committed, so that two processes never both take the last place.
create or replace function delivery_places(
  p_endpoints text[], p_limits integer[], p_owner text, p_now timestamptz, p_per_minute integer, p_at_once integer
) returns integer[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
declare lock_key integer;
begin
  -- Heartbeats use the database's clock, so the newest one shows its time.
  if not exists (
    select 1 from processes
    where id <> p_owner
      and greatest(heartbeat_at, left_at) > (select max(heartbeat_at) from processes) - interval '2 minutes'
  ) then
    return p_limits;
  end if;
  for lock_key in select distinct hashtext(e) from unnest(p_endpoints) as w (e) order by 1 loop
    perform pg_advisory_xact_lock(811003, lock_key);
  end loop;
  return array(
    select least(
      w.most,
      greatest(0, p_at_once - (
        select count(*)::integer from delivery_queue q where q.endpoint_id = w.endpoint and q.owner is not null
      )),
      greatest(0, p_per_minute - (
        select count(*)::integer from (
          select 1 from attempts_and_claims a
          where a.endpoint_id = w.endpoint and a.started_at > p_now - interval '2 minutes'
            and (a.ended_at is null or a.ended_at > p_now - interval '1 minute')
          limit p_per_minute
        ) counted
      ))
    )
    from unnest(p_endpoints, p_limits) with ordinality as w (endpoint, most, n) order by w.n
  );
end $$;

-- Claims due deliveries of several endpoints, oldest first per endpoint, at most p_limits of each
-- (ARCHITECTURE.md#rules-of-safety). Due times follow the clock of the process; the time of the claim follows the clock
-- of the database, because other processes judge it.
create or replace function delivery_claim(
  p_endpoints text[], p_limits integer[], p_owner text, p_now timestamptz, p_claimed_at timestamptz
) returns table (
  id text, created_at timestamptz, attempt integer, seq integer, due_at timestamptz, started_at timestamptz,
  body bytea, endpoint_id text, url text, secret bytea, previous_secret bytea, previous_secret_until timestamptz
) language plpgsql
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  with due as materialized (
    select q.*, e.id as endpoint_id, e.url, s.secret, s.previous_secret, s.previous_secret_until
    from unnest(p_endpoints, p_limits) as w (endpoint, most)
    cross join lateral (
      select e.id, e.url, e.secret, e.previous_secret, e.previous_secret_until, e.enabled, e.of_tasks, e.user_id
      from webhook_endpoints e where e.id = w.endpoint and e.deleted_at is null offset 0
    ) e
    cross join lateral (
      select e.secret, e.previous_secret, e.previous_secret_until where not e.of_tasks
      union all
      select u.secret, u.previous_secret, u.previous_secret_until from webhook_secrets u
      where e.of_tasks and u.user_id = e.user_id offset 0
    ) s
    cross join lateral (
      -- A range of one endpoint, in its order, so that only the endpoint's own index fits, never the index on due_at
      -- alone.
      select q.id, q.created_at, q.attempt, q.seq + 1 as seq, q.due_at from delivery_queue q
      where q.endpoint_id >= e.id and q.endpoint_id <= e.id and q.owner is null and q.due_at <= p_now
        and (e.enabled or q.manual)
      order by q.endpoint_id, q.due_at limit w.most for update skip locked
    ) q
  ), claimed as (
    update delivery_queue q set owner = p_owner, claimed_at = p_claimed_at, seq = q.seq + 1
    where q.id = any (array(select id from due))
  )
  select due.id, due.created_at, due.attempt, due.seq, due.due_at, p_claimed_at, e.body, due.endpoint_id,
    coalesce(d.webhook_url, due.url), due.secret, due.previous_secret, due.previous_secret_until
  from due
  cross join lateral (
    select d.event_id, d.event_created_at, d.event_type, d.webhook_url from deliveries d
    where d.id = due.id and d.created_at = due.created_at offset 0
  ) d
  cross join lateral (
    select event_body(e.body, e.openai, d.event_type) as body from events e
    where e.id = d.event_id and e.created_at = d.event_created_at offset 0
  ) e
  order by due.due_at, due.id;
end $$;

-- Records attempts that have ended: the delivery is finished, or due again at p_next. If the endpoint was disabled or
-- deleted in the meantime, a delivery that would be due again is skipped, unless its user resent it. For a claim that
-- another process has taken over (its seq is higher), only the row of the attempt changes, which delivery_rescue_some
-- has written. Recording a failure again, because the caller did not receive the first result, changes nothing.
create or replace function delivery_record(
  p_ids text[], p_created timestamptz[], p_seqs integer[], p_started timestamptz[], p_ended timestamptz[],
  p_next timestamptz[], p_attempts integer[], p_statuses integer[], p_failures text[], p_details text[],
  p_answers text[], p_addresses text[]
) returns void language plpgsql
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
declare
  -- Known before the statement begins, so that it opens only the partitions of these days.
  first_created constant timestamptz := (select min(c) from unnest(p_created) as c);
  last_created constant timestamptz := (select max(c) from unnest(p_created) as c);
  written integer;
begin
  with ended as materialized (
    select r.*, q.endpoint_id, q.due_at, case
      when r.failure is null then 'succeeded'
      when r.next_at is null then 'failed'
      when e.enabled or (q.manual and e.deleted_at is null) then 'pending'
      else 'skipped'
    end as outcome
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
  ), deleted as (
    delete from delivery_queue q where q.id = any (array(select id from ended where outcome <> 'pending'))
  ), requeued as (
    update delivery_queue q set owner = null, due_at = n.next_at, attempt = n.attempt
    from ended n where n.id = q.id and q.id = any (array(select id from ended where outcome = 'pending'))
  ), updated as (
    update deliveries d set status = n.outcome, updated_at = n.ended_at,
      attempts = d.attempts + case when n.failure = 'lost' then 0 else 1 end
    from ended n where n.id = d.id and d.id = any (array(select id from ended))
      and d.created_at between first_created and last_created
  ), turned as (
    -- Endpoints that begin to fail or that succeed again; their other attempts write nothing. Another process may be
    -- writing the same change.
    select e.id, h.since
    from (
      select n.endpoint_id, max(n.succeeded_at) as succeeded_at,
        min(n.ended_at) filter (where n.ended_at > coalesce(n.succeeded_at, '-infinity')) as since
      from (
        select n.endpoint_id, n.ended_at,
          max(n.ended_at) filter (where n.failure is null) over (partition by n.endpoint_id) as succeeded_at
        from ended n where n.failure is distinct from 'lost'
      ) n
      group by n.endpoint_id
    ) h
    cross join lateral (
      select e.id from webhook_endpoints e
      where e.id = h.endpoint_id
        and case when e.failing_since is null then h.since is not null else h.succeeded_at is not null end
      offset 0 for no key update skip locked
    ) e
  ), told as (
    update webhook_endpoints e set failing_since = t.since, failing_told = false
    from turned t where t.id = e.id and e.id = any (array(select id from turned))
  )
  insert into delivery_attempts
    (delivery_id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, remote_address)
  select id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, address from ended
  -- delivery_rescue_some has recorded the attempt as lost.
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

-- Marks attempts as `lost` whose process is dead, or that were claimed before p_claimed_before. They are not counted,
-- and their deliveries are due again now (ADR 0003). At most p_limit, one process at a time. Returns how many, and the
-- endpoints to notify.
create or replace function delivery_rescue_some(
  p_alive_since timestamptz, p_claimed_before timestamptz, p_now timestamptz, p_limit integer,
  out rescued integer, out endpoints text[]
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  lost text[];
  kept text[];
  given_up text[];
  first_at timestamptz;
  last_at timestamptz;
begin
  rescued := 0;
  endpoints := '{}';
  if not pg_try_advisory_xact_lock(811007) then return; end if;
  lost := array(
    select q.id from delivery_queue q
    where q.owner is not null and (
      q.claimed_at < p_claimed_before
      or not exists (select 1 from processes p where p.id = q.owner and p.heartbeat_at >= p_alive_since))
    limit p_limit for update of q skip locked);
  -- If nothing is lost, the statements that open the log's days or join with them are not planned (ADR 0112)
  if cardinality(lost) = 0 then return; end if;
  select count(*), coalesce(array_agg(distinct endpoint_id) filter (where continues), '{}'),
    array_agg(id) filter (where continues), array_agg(id) filter (where not continues), min(created_at), max(created_at)
  into rescued, endpoints, kept, given_up, first_at, last_at
  from (
    select q.id, q.created_at, q.endpoint_id, e.enabled or (q.manual and e.deleted_at is null) as continues
    from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id
    where q.id = any (lost)
  ) l;
  insert into delivery_attempts (delivery_id, seq, endpoint_id, due_at, started_at, ended_at, failure, detail)
    select q.id, q.seq, q.endpoint_id, q.due_at, q.claimed_at, greatest(q.claimed_at, p_now), 'lost',
      'the process ended during this attempt'
    from delivery_queue q where q.id = any (lost)
    on conflict do nothing;
  update delivery_queue q set owner = null, due_at = p_now where q.id = any (kept);
  update deliveries d set status = 'pending', updated_at = p_now
    where d.id = any (kept) and d.created_at between first_at and last_at;
  if given_up is null then return; end if;
  delete from delivery_queue q where q.id = any (given_up);
  perform deliveries_skip(given_up, first_at, last_at, p_now);
end $$;

-- Marks deliveries that were removed from the queue, created from p_first to p_last, as `skipped`. Finds them by their
-- keys, because a join may read the whole log if the statistics of the queue say that many were removed (ADR 0112).
create or replace function deliveries_skip(p_ids text[], p_first timestamptz, p_last timestamptz, p_now timestamptz)
returns void language plpgsql set enable_seqscan = off as $$
begin
  update deliveries d set status = 'skipped', updated_at = p_now
  where d.id = any (p_ids) and d.created_at between p_first and p_last;
end $$;

-- Skips deliveries that were queued while the transaction that disabled their endpoint was running, for endpoints
-- disabled since then.
create or replace function deliveries_skip_disabled(p_disabled_since timestamptz, p_now timestamptz)
returns void language plpgsql as $$
declare
  ids text[];
  first_at timestamptz;
  last_at timestamptz;
begin
  with deleted as (
    delete from delivery_queue q using webhook_endpoints e
    where e.id = q.endpoint_id and not e.enabled and e.updated_at >= p_disabled_since
      and q.owner is null and (not q.manual or e.deleted_at is not null)
    returning q.id, q.created_at
  )
  select array_agg(d.id), min(d.created_at), max(d.created_at) into ids, first_at, last_at from deleted d;
  if ids is not null then perform deliveries_skip(ids, first_at, last_at, p_now); end if;
end $$;

-- Queues deliveries again, with the same id and a new schedule. The numbers of their attempts continue.
-- Ignores deliveries with a claim, and those whose event was dropped with its day: there is nothing to send, and a
-- claim of one would never end. Returns the endpoints to notify, and how many were queued.
-- docs/reference/webhooks.md#redelivery
create or replace function delivery_requeue(p_ids text[], p_now timestamptz, out endpoints text[], out queued integer)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
begin
  with requested as materialized (
    select i.id, id_time(i.id, 'whd_') as created_at,
      coalesce((
        -- Reads the delivery's day and later ones
        select max(a.seq) from delivery_attempts a
        where a.delivery_id = i.id and a.started_at >= id_time(i.id, 'whd_') - interval '1 hour'), 0) as seq
    from unnest(p_ids) as i (id)
  ), requeued as (
    insert into delivery_queue (id, created_at, endpoint_id, due_at, seq, manual)
    select d.id, d.created_at, d.endpoint_id, p_now, w.seq, true
    from requested w join deliveries d on d.id = w.id and d.created_at = w.created_at
    cross join lateral (
      select from events e where e.id = d.event_id and e.created_at = d.event_created_at offset 0
    ) e
    on conflict (id) do update set due_at = excluded.due_at, attempt = 0, manual = true
      where delivery_queue.owner is null
    returning id, created_at, endpoint_id
  ), updated as (
    update deliveries d set status = 'pending', updated_at = p_now
    from requeued where d.id = requeued.id and d.created_at = requeued.created_at
  )
  select coalesce(array_agg(distinct endpoint_id), '{}'), count(*) into endpoints, queued from requeued;
end $$;

-- The states of an endpoint's deliveries by the hour of their creation, oldest first. Reads the newest p_most of each
-- hour by the endpoint's index; has_more says whether there are others. The statement is planned for each hour, so that
-- only its day is opened.
create or replace function deliveries_by_hour(p_endpoint text, p_from timestamptz, p_hours integer, p_most integer)
returns table (hour timestamptz, succeeded integer, failed integer, waiting integer, has_more boolean)
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_custom_plan as $$
declare
  first_at timestamptz;
  next_at timestamptz;
  first_id text;
  next_id text;
begin
  for n in 0 .. p_hours - 1 loop
    first_at := p_from + n * interval '1 hour';
    next_at := first_at + interval '1 hour';
    first_id := 'whd_' || lpad(to_hex(floor(extract(epoch from first_at) * 1000)::bigint), 12, '0');
    next_id := 'whd_' || lpad(to_hex(floor(extract(epoch from next_at) * 1000)::bigint), 12, '0');
    return query
    with r as materialized (
      select c.status from deliveries c
      where c.endpoint_id = any (array[p_endpoint]) and c.id >= first_id and c.id < next_id
        and c.created_at >= first_at and c.created_at < next_at
      order by c.endpoint_id, c.id desc limit p_most + 1
    ), counted as (
      select r.status from r limit p_most
    )
    select first_at,
      (count(*) filter (where c.status = 'succeeded'))::integer,
      (count(*) filter (where c.status = 'failed'))::integer,
      (count(*) filter (where c.status in ('pending', 'delivering')))::integer,
      (select count(*) > p_most from r)
    from counted c;
  end loop;
end $$;

-- The oldest p_limit of a user's matching deliveries to existing endpoints, of one endpoint or of all (null), with ids
-- between p_after and p_before, which lie in the days from p_since to p_until. Reads at most p_window deliveries;
-- `scan_end` is the last one read if more may follow. The planner can only use an index in the order of the ids: the
-- first column is part of the order and is compared with an array, so that no other index fits (ADR 0165).
create or replace function deliveries_matching(
  p_user uuid, p_endpoint text, p_statuses text[], p_type text, p_after text, p_before text, p_since timestamptz,
  p_until timestamptz, p_window integer, p_limit integer
) returns table (ids text[], scan_end text) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_custom_plan as $$
declare endpoints text[];
begin
  endpoints := array(select e.id from webhook_endpoints e where e.user_id = p_user and e.deleted_at is null);
  ids := '{}';
  if p_endpoint is null then
    return query
    with r as materialized (
      select c.id, c.endpoint_id, c.event_type, c.status from deliveries c
      where c.user_id = any (array[p_user]) and c.id > p_after and c.id < p_before
        and c.created_at >= p_since and c.created_at < p_until
      order by c.user_id desc, c.id limit p_window
    )
    select array(
        select r.id from r
        where r.status = any (p_statuses) and r.endpoint_id = any (endpoints)
          and (p_type is null or r.event_type = p_type)
        order by r.id limit p_limit),
      (select case when count(*) = p_window then max(r.id) end from r);
  elsif p_endpoint = any (endpoints) then
    return query
    with r as materialized (
      select c.id, c.event_type, c.status from deliveries c
      where c.endpoint_id = any (array[p_endpoint]) and c.id > p_after and c.id < p_before
        and c.created_at >= p_since and c.created_at < p_until
      order by c.endpoint_id desc, c.id limit p_window
    )
    select array(
        select r.id from r
        where r.status = any (p_statuses) and (p_type is null or r.event_type = p_type)
        order by r.id limit p_limit),
      (select case when count(*) = p_window then max(r.id) end from r);
  else
    return next;
  end if;
end $$;
