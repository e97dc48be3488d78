-- A database as the last program with the former migrations 0001 to 0017 leaves it when it is killed, in one file: schema,
-- rows and schema_migrations. Made by pg_dump (--inserts) after that program had served users, keys, endpoints, tasks,
-- cancellations and passthrough calls on Postgres 15; rows of the states that cannot be reached in a minute (a slot, a
-- vendor's fault, deliveries that succeeded and failed) were added through the program's own SQL functions.
-- MASTER_KEY and the operator's token are those of test/support/gateway.ts; the user's API key is
-- sk-NAyO1ieImAJ7u9IgPlnFcF3hBNqWffyQB7wZuGth3udjTb.
-- It never changes: the test of the adoption (test/db/contract/adoptedSchema.test.ts) loads it.

CREATE TYPE public.allowance_notice AS (
	api_key_id text,
	granted bigint,
	available bigint,
	alive boolean,
	expires_at timestamp with time zone,
	user_id uuid,
	threshold bigint
);

CREATE TYPE public.call_notice AS (
	id uuid,
	refused text,
	user_id uuid,
	available bigint,
	threshold bigint
);

CREATE TYPE public.task_acceptance AS (
	n integer,
	outcome text,
	request_hash bytea,
	status integer,
	body text,
	cost bigint,
	balance bigint,
	endpoints text[]
);

CREATE TYPE public.wallet_crossing AS (
	user_id uuid,
	available bigint,
	threshold bigint
);

CREATE FUNCTION public.allowances_settle(p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[], p_captures bigint[], p_charged bigint[], p_ended uuid[], p_places integer[], p_lines bigint[], p_drawn bigint[], p_begun bigint[], p_amounts bigint[], p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[], p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[], p_process text, p_throttle interval, p_alerts boolean, p_now timestamp with time zone) RETURNS SETOF public.allowance_notice
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  notices allowance_notice[];
  covered boolean;
  known boolean;
  idle boolean;
  crossed wallet_crossing[];
begin
  -- In one order, so that batches cannot deadlock. The next statement sees what others have committed.
  perform from wallets w where w.user_id = any (p_users) order by w.user_id for no key update;
  select bool_and(coalesce(h.amount, 0) >= x.charged), bool_and(h.id is not null) into covered, known
  from unnest(p_keys, p_charged) as x(key, charged)
  left join holds h on h.kind = 'allowance' and h.process_id = p_process and h.api_key_id = x.key;
  if not covered then
    raise exception 'calls without cover' using errcode = 'GW409';
  end if;
  -- Who revokes a key waits for an allowance that is being opened, or it is revoked before: `revokeKey` sees it.
  if not known then
    perform from api_keys k where k.id = any (p_keys) order by k.id for share of k;
  end if;
  with gone as (
    delete from holds h where h.kind = 'allowance' and h.process_id = p_process and h.api_key_id = any (p_keys)
    returning h.id, h.api_key_id as key, h.amount
  ), wanted as (
    select x.*, g.id as old, coalesce(g.amount, 0) - x.charged as rest, w.settled, w.held, w.entry_count,
      w.trigger_threshold, w.state,
      k.id is not null as alive, k.expires_at,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as idle,
      -- What is left of the old one, as far as it is wanted, is free in any case
      least(x.needs + x.extra, coalesce(g.amount, 0) - x.charged) as kept
    from unnest(p_keys, p_users, p_holds, p_needs, p_extras, p_captures, p_charged) with ordinality
      as x(key, user_id, hold, needs, extra, captures, charged, place)
    join wallets w on w.user_id = x.user_id
    left join gone g on g.key = x.key
    left join api_keys k on k.id = x.key and k.user_id = x.user_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > p_now) and 'inference' = any (k.scopes)
  ), room as (
    select t.*, t.settled - t.held + sum(t.rest - t.kept) over mine as free, count(*) over mine as keys
    from wanted t window mine as (partition by t.user_id)
  ), sized as (
    select r.*, r.kept + case when r.alive and r.free > 0
      then least(r.needs + r.extra - r.kept, div(r.free, 16 * r.keys)) else 0 end::bigint as granted
    from room r
  ), placed as materialized (
    -- Of a wallet all releases come first, then the captures, then the holds
    select s.*,
      s.entry_count + count(*) filter (where s.rest > 0) over upto as release_line,
      (s.held - sum(s.rest) over upto)::bigint as held_released,
      (s.entry_count + count(*) filter (where s.rest > 0) over mine + sum(s.captures) over upto - s.captures)::bigint as lines_before,
      (s.settled - sum(s.charged) over upto + s.charged)::bigint as settled_before,
      (s.held - sum(s.rest) over mine - sum(s.charged) over upto + s.charged)::bigint as held_before,
      (s.entry_count + count(*) filter (where s.rest > 0) over mine + sum(s.captures) over mine
        + count(*) filter (where s.granted > 0) over upto)::bigint as hold_line,
      (s.settled - sum(s.charged) over mine)::bigint as settled_now,
      (s.held - sum(s.rest + s.charged) over mine)::bigint as held_captured,
      (s.held - sum(s.rest + s.charged) over mine + sum(s.granted) over upto)::bigint as held_now,
      s.place = max(s.place) over mine as is_last
    from sized s
    window mine as (partition by s.user_id), upto as (partition by s.user_id order by s.place rows unbounded preceding)
  ), opened as (
    insert into holds (id, user_id, kind, amount, created_at, process_id, api_key_id)
    select hold, user_id, 'allowance', granted, p_now, p_process, key from placed where granted > 0
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at)
    select c.id, p_users[c.place], p_keys[c.place], c.vendor, c.model, c.route, c.account, c.outcome, c.status, c.amount,
      c.captured, c.usage::jsonb, c.sandbox, c.trace, timestamptz 'epoch' + c.begun * interval '1 millisecond', p_now
    from (
      select unnest(p_ended) as id, unnest(p_places) as place, unnest(p_vendors) as vendor, unnest(p_models) as model,
        unnest(p_routes) as route, unnest(p_accounts) as account, unnest(p_outcomes) as outcome, unnest(p_statuses) as status,
        unnest(p_amounts) as amount, unnest(p_captured) as captured, unnest(p_usages) as usage, unnest(p_sandboxes) as sandbox,
        unnest(p_traces) as trace, unnest(p_begun) as begun
    ) c
  ), ledger as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, note, trace_id, created_at)
    select user_id, release_line, 'release', rest, settled, held_released, 'release:' || old, old, null, null, p_now
    from placed where rest > 0
    union all
    select p.user_id, p.lines_before + c.line, 'capture', c.captured, p.settled_before - c.drawn, p.held_before - c.drawn,
      'capture:' || c.id, c.id, p.old::text, c.trace, p_now
    from (
      select unnest(p_ended) as id, unnest(p_places) as place, unnest(p_lines) as line, unnest(p_drawn) as drawn,
        unnest(p_captured) as captured, unnest(p_traces) as trace
    ) c join placed p on p.place = c.place
    where c.line > 0
    union all
    select user_id, hold_line, 'hold', granted, settled_now, held_now, 'hold:' || hold, hold, null, null, p_now
    from placed where granted > 0
  ), written as (
    update wallets u set settled = p.settled_now, held = p.held_now, entry_count = p.hold_line
    from placed p where u.user_id = p.user_id and p.is_last
  )
  select
    array_agg((p.key, p.granted, p.free, p.alive, p.expires_at, null, null)::allowance_notice),
    bool_or(p.idle and p.alive),
    -- As of the charge that crosses the threshold: before anything is held again
    array_agg((p.user_id, p.settled_now - p.held_captured, p.trigger_threshold)::wallet_crossing order by p.user_id)
      filter (where p.charged > 0 and p.state = 'NORMAL' and p.settled_now < p.trigger_threshold)
  into notices, idle, crossed from placed p;
  if idle then perform api_keys_used(p_keys, p_now); end if;
  if crossed is not null then
    notices := notices || array(
      select (null, null, a.available, null, null, a.user_id, a.threshold)::allowance_notice
      from wallet_alerts(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  return query select * from unnest(notices);
end $$;

CREATE FUNCTION public.allowances_settle_again(p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[], p_captures bigint[], p_charged bigint[], p_ended uuid[], p_places integer[], p_lines bigint[], p_drawn bigint[], p_begun bigint[], p_amounts bigint[], p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[], p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[], p_process text, p_throttle interval, p_alerts boolean, p_now timestamp with time zone) RETURNS SETOF public.allowance_notice
    LANGUAGE plpgsql
    AS $$
begin
  perform from wallets w where w.user_id = any (p_users) order by w.user_id for no key update;
  with fresh as (
    select c.*, sum(c.captured) over (partition by c.place order by c.n) <= coalesce(h.amount, 0) as covered
    from unnest(p_ended, p_places, p_begun, p_amounts, p_captured, p_outcomes, p_statuses, p_accounts, p_usages,
        p_vendors, p_models, p_routes, p_sandboxes, p_traces) with ordinality
      as c(id, place, begun, amount, captured, outcome, status, account, usage, vendor, model, route, sandbox, trace, n)
    left join holds h on h.kind = 'allowance' and h.process_id = p_process and h.api_key_id = p_keys[c.place]
    where not exists (select from wallet_entries e where e.subject_id = c.id and e.kind = 'capture')
      and not exists (select from calls r where r.id = c.id and r.user_id = p_users[c.place])
  ), counted as (
    select f.*, case when f.covered then f.captured else 0 end as charged,
      case when f.covered or f.captured = 0 then f.outcome else 'lost' end as result
    from fresh f
  ), placed as (
    select c.*, count(*) filter (where c.charged > 0) over upto as line, (sum(c.charged) over upto)::bigint as drawn
    from counted c window upto as (partition by c.place order by c.n)
  )
  select array_agg(id), array_agg(place), array_agg(case when charged > 0 then line else 0 end), array_agg(drawn), array_agg(begun),
    array_agg(amount), array_agg(charged), array_agg(result), array_agg(status), array_agg(account), array_agg(usage),
    array_agg(vendor), array_agg(model), array_agg(route), array_agg(sandbox), array_agg(trace),
    (select array_agg((select coalesce(max(c.line), 0) from placed c where c.place = k.n) order by k.n)
      from unnest(p_keys) with ordinality as k(key, n)),
    (select array_agg((select coalesce(max(c.drawn), 0) from placed c where c.place = k.n) order by k.n)
      from unnest(p_keys) with ordinality as k(key, n))
  into p_ended, p_places, p_lines, p_drawn, p_begun, p_amounts, p_captured, p_outcomes, p_statuses, p_accounts, p_usages,
    p_vendors, p_models, p_routes, p_sandboxes, p_traces, p_captures, p_charged
  from placed;
  return query select * from allowances_settle(
    p_keys, p_users, p_holds, p_needs, p_extras, p_captures, p_charged, p_ended, p_places, p_lines, p_drawn, p_begun,
    p_amounts, p_captured, p_outcomes, p_statuses, p_accounts, p_usages, p_vendors, p_models, p_routes, p_sandboxes,
    p_traces, p_process, p_throttle, p_alerts, p_now);
end $$;

CREATE TABLE public.api_keys (
    id text NOT NULL,
    user_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    preview text NOT NULL,
    name text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone
);

CREATE FUNCTION public.api_key_admit(p_hash bytea, p_per_minute integer, p_now timestamp with time zone, OUT k public.api_keys, OUT admitted boolean, OUT remaining integer, OUT reset_seconds integer) RETURNS SETOF record
    LANGUAGE plpgsql
    AS $$
declare tokens double precision;
begin
  select * into k from api_keys where key_hash = p_hash;
  if not found then return; end if;
  if k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
    and 'inference' = any (k.scopes) then
    insert into request_buckets as b (api_key_id, tokens, admitted, filled_at)
      values (k.id, p_per_minute - 1, true, p_now)
      on conflict (api_key_id) do update set
        (tokens, admitted) = (
          select f.filled - case when f.filled >= 0.999999 then 1 else 0 end, f.filled >= 0.999999
          from (select least(
            p_per_minute,
            b.tokens + greatest(0, extract(epoch from p_now - b.filled_at)) * p_per_minute / 60.0
          )::double precision as filled) f
        ),
        filled_at = case when b.filled_at > p_now + interval '1 minute' then p_now
          else greatest(b.filled_at, p_now) end
      returning b.tokens, b.admitted into tokens, admitted;
    remaining := case when admitted then greatest(0, floor(tokens + 0.000001)) else 0 end;
    reset_seconds := greatest(
      case when admitted then 0 else 1 end,
      ceil((case when admitted then p_per_minute else 1 end - tokens) * 60.0 / p_per_minute - 0.000001)
    );
  end if;
  return next;
end $$;

CREATE FUNCTION public.api_keys_used(p_keys text[], p_now timestamp with time zone) RETURNS void
    LANGUAGE sql
    AS $$
  update api_keys k set last_used_at = p_now
  where k.id = any (p_keys) and k.revoked_at is null
    and (k.last_used_at is null or k.last_used_at < p_now - interval '1 minute')
$$;

CREATE FUNCTION public.calls_write(p_ended uuid[], p_owners uuid[], p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[], p_ids uuid[], p_users uuid[], p_keys text[], p_amounts bigint[], p_notes text[], p_process text, p_throttle interval, p_alerts boolean, p_now timestamp with time zone) RETURNS SETOF public.call_notice
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  notices call_notice[];
  crossed wallet_crossing[];
  idle boolean;
begin
  -- In one order, so that batches cannot deadlock. The next statement sees what others have committed.
  perform from wallets w where w.user_id = any (p_owners || p_users) order by w.user_id for no key update;
  with wallet as materialized (
    select w.user_id, w.settled, w.held, w.entry_count, w.trigger_threshold, w.state
    from wallets w where w.user_id = any (p_owners || p_users)
  ), gone as (
    delete from holds h where h.id = any (p_ended) and h.user_id = any (p_owners) and h.kind = 'call' returning h.*
  ), closed as materialized (
    select g.id, g.user_id, g.amount, g.created_at, least(x.captured, g.amount) as captured, x.outcome, x.status,
      x.account, x.usage, n.*
    from gone g
    join unnest(p_ended, p_captured, p_outcomes, p_statuses, p_accounts, p_usages)
      as x(id, captured, outcome, status, account, usage) on x.id = g.id
    cross join lateral json_to_record(g.call)
      as n(key text, vendor text, model text, route text, sandbox boolean, trace text)
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at)
    select id, user_id, key, vendor, model, route, account, outcome, status, amount, captured,
      usage::jsonb, sandbox, trace, created_at, p_now
    from closed
  ), freed as (
    select user_id, sum(captured)::bigint as captured, sum(amount)::bigint as amount from closed group by user_id
  ), starting as (
    select x.id, x.user_id, x.amount, x.note, k.id is not null as alive,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as idle,
      sum(x.amount) filter (where k.id is not null)
        over (partition by x.user_id order by x.amount, x.id rows unbounded preceding) as asked
    from unnest(p_ids, p_users, p_keys, p_amounts, p_notes) as x(id, user_id, key, amount, note)
    left join (
      select k.id, k.last_used_at from api_keys k
      where k.id = any (p_keys) and k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
        and 'inference' = any (k.scopes)
    ) k on k.id = x.key
  ), judged as materialized (
    select s.id, s.user_id, s.amount, s.note, s.idle, case
        when not s.alive then 'key'
        when w.user_id is null or s.asked > w.settled - coalesce(f.captured, 0) - w.held + coalesce(f.amount, 0)
          then 'balance'
      end as refused
    from starting s left join wallet w on w.user_id = s.user_id left join freed f on f.user_id = s.user_id
  ), opened as (
    insert into holds (id, user_id, kind, amount, created_at, process_id, call)
    select id, user_id, 'call', amount, p_now, p_process, note::json from judged where refused is null
  ), lines as (
    select user_id, id, 1 as place, 'capture' as kind, captured as amount, -captured as settles, -captured as holds,
      amount - captured as rest, trace
    from closed where captured > 0
    union all
    select user_id, id, 2, 'release', amount - captured, 0, captured - amount, 0, trace
    from closed where captured < amount or amount = 0
    union all
    select user_id, id, 3, 'hold', amount, 0, amount, 0, note::json ->> 'trace' from judged where refused is null
  ), numbered as (
    select l.user_id, l.id, l.kind, l.amount, l.rest, l.trace, w.trigger_threshold, w.state,
      w.entry_count + row_number() over line as seq,
      (w.settled + sum(l.settles) over line)::bigint as settled_after,
      (w.held + sum(l.holds) over line)::bigint as held_after
    from lines l join wallet w on w.user_id = l.user_id
    -- The lines of a call stand together
    window line as (partition by l.user_id order by l.place = 3, l.id, l.place rows unbounded preceding)
  ), ledger as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select user_id, seq, kind, amount, settled_after, held_after, kind || ':' || id, id, trace, p_now from numbered
  ), written as (
    update wallets u set settled = u.settled + s.settles, held = u.held + s.holds, entry_count = u.entry_count + s.lines
    from (
      select user_id, count(*) as lines, sum(settles)::bigint as settles, sum(holds)::bigint as holds
      from lines group by user_id
    ) s
    where u.user_id = s.user_id
  )
  select
    array_agg((j.id, j.refused, null, null, null)::call_notice) filter (where j.refused is not null),
    bool_or(j.idle),
    -- As of the charge that crosses the threshold: behind its lines
    (select array_agg((n.user_id, n.settled_after - n.held_after + n.rest, n.trigger_threshold)::wallet_crossing
        order by n.seq)
      from numbered n where n.kind = 'capture' and n.settled_after < n.trigger_threshold and n.state = 'NORMAL')
  into notices, idle, crossed from judged j;
  if idle then perform api_keys_used(p_keys, p_now); end if;
  if crossed is not null then
    notices := notices || array(
      select (null, null, a.user_id, a.available, a.threshold)::call_notice
      from wallet_alerts(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  if notices is not null then
    return query select * from unnest(notices);
  end if;
end $$;

CREATE FUNCTION public.day_partition(p_table text, p_column text, p_day date) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.delivery_claim(p_endpoints text[], p_limits integer[], p_owner text, p_now timestamp with time zone) RETURNS TABLE(id text, created_at timestamp with time zone, attempt integer, seq integer, due_at timestamp with time zone, started_at timestamp with time zone, body bytea, endpoint_id text, url text, secret bytea, previous_secret bytea, previous_secret_until timestamp with time zone)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.delivery_free(p_alive_since timestamp with time zone, p_claimed_before timestamp with time zone, p_now timestamp with time zone) RETURNS integer
    LANGUAGE sql
    AS $$
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

CREATE FUNCTION public.delivery_queue_keep(p_keep_since timestamp with time zone) RETURNS void
    LANGUAGE sql
    AS $$
  delete from delivery_queue q
  where q.created_at < p_keep_since
    and not exists (select 1 from deliveries d where d.id = q.id and d.created_at = q.created_at)
$$;

CREATE FUNCTION public.delivery_record(p_ids text[], p_created timestamp with time zone[], p_seqs integer[], p_started timestamp with time zone[], p_ended timestamp with time zone[], p_next timestamp with time zone[], p_attempts integer[], p_statuses integer[], p_failures text[], p_details text[], p_answers text[], p_addresses text[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.delivery_requeue(p_ids text[], p_now timestamp with time zone) RETURNS text[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.delivery_room(p_endpoints text[], p_limits integer[], p_owner text, p_now timestamp with time zone, p_per_minute integer) RETURNS integer[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.event_publish(p_id text, p_user uuid, p_type text, p_task uuid, p_body bytea, p_trace text, p_now timestamp with time zone) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
declare targets text[];
begin
  insert into events (id, created_at, user_id, type, task_id, body, trace_id)
    values (p_id, p_now, p_user, p_type, p_task, p_body, p_trace);
  select array_agg(e.id) into targets from webhook_endpoints e
    where e.user_id = p_user and e.enabled and e.deleted_at is null and p_type = any (e.events);
  if targets is null then return '{}'; end if;
  with made as (
    select time_sorted_id('whd_', p_now) as id, endpoint_id from unnest(targets) as endpoint_id
  ), written as (
    insert into deliveries
      (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, task_id, status, updated_at)
    select id, p_now, p_user, endpoint_id, p_id, p_now, p_type, p_task, 'pending', p_now from made
  )
  insert into delivery_queue (id, created_at, endpoint_id, due_at)
    select id, p_now, endpoint_id, p_now from made;
  return targets;
end $$;

CREATE FUNCTION public.forbid_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception '% rows are never changed', tg_table_name using errcode = 'GW001';
end $$;

CREATE FUNCTION public.forbid_other_wallet() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'a row of % keeps its wallet', tg_table_name using errcode = 'GW001';
end $$;

CREATE FUNCTION public.id_time(p_id text, p_prefix text) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE
    AS $$
  select timestamptz 'epoch' + interval '1 millisecond'
    * (('x' || lpad(substr(p_id, length(p_prefix) + 1, 12), 16, '0'))::bit(64)::bigint)
$$;

CREATE TABLE public.wallets (
    user_id uuid NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    trigger_threshold bigint DEFAULT 1000000000 NOT NULL,
    state text DEFAULT 'NORMAL'::text NOT NULL,
    last_alert_at timestamp with time zone,
    rearmed_by_top_up boolean DEFAULT true NOT NULL,
    entry_count bigint DEFAULT 0 NOT NULL,
    CONSTRAINT wallets_empty_before_first_entry CHECK (((entry_count > 0) OR ((settled = 0) AND (held = 0)))),
    CONSTRAINT wallets_entry_count_not_negative CHECK ((entry_count >= 0)),
    CONSTRAINT wallets_held_not_negative CHECK ((held >= 0)),
    CONSTRAINT wallets_settled_covers_held CHECK ((settled >= held)),
    CONSTRAINT wallets_state_check CHECK ((state = ANY (ARRAY['NORMAL'::text, 'ALERTED'::text]))),
    CONSTRAINT wallets_trigger_threshold_check CHECK ((trigger_threshold >= 0))
)
WITH (fillfactor='50');

CREATE FUNCTION public.ledger_add(w public.wallets, p_kind text, p_amount bigint, p_subject uuid, p_trace text, p_now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
  values
    (w.user_id, w.entry_count, p_kind, p_amount, w.settled, w.held, p_kind || ':' || p_subject, p_subject, p_trace, p_now);
end $$;

CREATE FUNCTION public.partitions_keep(p_table text, p_column text, p_now timestamp with time zone, p_days integer, p_keep_since timestamp with time zone, OUT made integer, OUT dropped integer) RETURNS record
    LANGUAGE plpgsql
    AS $_$
declare
  part record;
  today date := (p_now at time zone 'UTC')::date;
begin
  perform set_config('lock_timeout', '5s', true);
  made := 0;
  dropped := 0;
  for n in 0..p_days loop
    if day_partition(p_table, p_column, today + n) then made := made + 1; end if;
  end loop;
  for part in
    select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = p_table::regclass and c.relname ~ ('^' || p_table || '_\d{8}$')
      and (to_date(right(c.relname::text, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= p_keep_since
  loop
    execute format('drop table %I', part.name);
    dropped := dropped + 1;
  end loop;
  execute format('delete from %I where %I < %L', p_table || '_default', p_column, p_keep_since);
end $_$;

CREATE FUNCTION public.rows_have_wallets() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if exists (
    select 1 from (select distinct a.user_id from added a) a
    where not exists (select 1 from wallets w where w.user_id = a.user_id)
  ) then
    raise exception 'a row of % has no wallet', tg_table_name using errcode = 'GW001';
  end if;
  return null;
end $$;

CREATE TABLE public.idempotency_keys (
    user_id uuid NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    status integer NOT NULL,
    body text NOT NULL,
    cost bigint,
    balance bigint,
    created_at timestamp with time zone NOT NULL
);

CREATE FUNCTION public.task_accept(p_task uuid, p_user uuid, p_api_key text, p_vendor text, p_model text, p_action text, p_kind text, p_body jsonb, p_sandbox boolean, p_price bigint, p_deadline timestamp with time zone, p_trace text, p_now timestamp with time zone, p_event text, p_event_body bytea, p_key text, p_request_hash bytea, p_answer text, p_key_since timestamp with time zone, OUT replayed public.idempotency_keys, OUT balance bigint, OUT endpoints text[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare a task_acceptance;
begin
  select * into strict a from task_accept_many(jsonb_build_array(jsonb_build_object(
    'n', 0, 'task', p_task, 'user_id', p_user, 'api_key', p_api_key, 'vendor', p_vendor, 'model', p_model,
    'action', p_action, 'kind', p_kind, 'body', p_body, 'sandbox', p_sandbox, 'price', p_price,
    'deadline', p_deadline, 'trace', p_trace, 'now', p_now, 'event', p_event, 'event_body', p_event_body,
    'key', p_key, 'request_hash', p_request_hash, 'answer', p_answer, 'key_since', p_key_since)));
  case a.outcome
    when 'balance_too_low' then
      raise exception 'balance too low for the hold' using errcode = 'GW402';
    when 'replayed' then
      select * into replayed from idempotency_keys k where k.user_id = p_user and k.key = p_key;
    else
      balance := a.balance;
      endpoints := a.endpoints;
  end case;
end $$;

CREATE FUNCTION public.task_accept_many(p_calls jsonb) RETURNS SETOF public.task_acceptance
    LANGUAGE plpgsql
    AS $$
declare
  c record;
  w wallets;
  a task_acceptance;
  known idempotency_keys;
begin
  for c in
    select * from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, user_id uuid, api_key text, vendor text, model text, action text, kind text, body jsonb,
      sandbox boolean, price bigint, deadline timestamptz, trace text, now timestamptz, event text,
      event_body bytea, running_max integer, key text, request_hash bytea, answer text, key_since timestamptz)
    order by x.user_id, x.n
  loop
    if w.user_id is distinct from c.user_id then
      if w.user_id is not null then perform wallet_write(w); end if;
      w := wallet_lock(c.user_id);
    end if;
    a := null;
    a.n := c.n;
    if c.key is not null then
      select * into known from idempotency_keys k
        where k.user_id = c.user_id and k.key = c.key and k.created_at >= c.key_since;
      if found then
        a := (c.n, 'replayed', known.request_hash, known.status, known.body, known.cost, known.balance, null);
        return next a;
        continue;
      end if;
    end if;
    -- The same task again: its first acceptance was committed, but the answer was lost.
    select settled_after - held_after into a.balance from wallet_entries
      where subject_id = c.task and kind = 'hold' and user_id = c.user_id;
    if found then
      a.outcome := 'accepted';
      a.endpoints := '{}';
      return next a;
      continue;
    end if;
    if c.running_max > 0 and (select count(*) from runs r where r.api_key_id = c.api_key) >= c.running_max then
      a.outcome := 'too_many_running';
      return next a;
      continue;
    end if;
    if w.user_id is null or w.settled - w.held < c.price then
      a.outcome := 'balance_too_low';
      return next a;
      continue;
    end if;
    w := wallet_freeze(w, c.task, 'task', c.price, c.trace, c.now);
    a.balance := w.settled - w.held;
    insert into tasks
      (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id, created_at, updated_at)
    values
      (c.task, c.user_id, c.api_key, c.vendor, c.model, c.action, c.kind, 'pending', c.body, c.sandbox, c.price, c.trace, c.now, c.now);
    insert into runs (task_id, api_key_id, deadline_at) values (c.task, c.api_key, c.deadline);
    a.endpoints := event_publish(c.event, c.user_id, 'task.created', c.task, c.event_body, c.trace, c.now);
    if c.key is not null then
      insert into idempotency_keys as k (user_id, key, request_hash, status, body, cost, balance, created_at)
        values (c.user_id, c.key, c.request_hash, 202, c.answer, c.price, a.balance, c.now)
        on conflict (user_id, key) do update
          set request_hash = excluded.request_hash, status = 202, body = excluded.body, cost = excluded.cost,
              balance = excluded.balance, created_at = excluded.created_at;
    end if;
    a.outcome := 'accepted';
    return next a;
  end loop;
  if w.user_id is not null then perform wallet_write(w); end if;
end $$;

CREATE FUNCTION public.task_finish_many(p_calls jsonb) RETURNS TABLE(n integer, user_id uuid, alert boolean, available bigint, threshold bigint, endpoints text[])
    LANGUAGE plpgsql
    AS $$
declare
  c record;
  h holds;
  w wallets;
  thawed record;
begin
  for c in
    select x.*, t.user_id as owner, t.trace_id from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, epoch integer, status text, result jsonb, error jsonb, captured bigint,
      event text, event_body bytea, throttle double precision, now timestamptz)
    cross join lateral (
      -- One look by key for each: a join would be planned once, for as many tasks as there were then.
      select o.user_id, o.trace_id from tasks o where o.id = x.task offset 0
    ) t
    order by t.user_id, x.n
  loop
    if w.user_id is distinct from c.owner then
      if w.user_id is not null then perform wallet_write(w); end if;
      w := wallet_lock(c.owner);
    end if;
    delete from runs r where r.task_id = c.task and (c.epoch is null or r.epoch = c.epoch);
    continue when not found;
    update tasks t
      set status = c.status, result = c.result, error = c.error, captured = c.captured, updated_at = c.now
      where t.id = c.task and t.status in ('pending', 'processing');
    delete from holds where id = c.task returning * into strict h;
    select * into thawed from wallet_thaw(w, h, c.captured, make_interval(secs => c.throttle), c.trace_id, c.now);
    w := thawed.w;
    alert := thawed.alert;
    n := c.n;
    user_id := c.owner;
    available := w.settled - w.held;
    threshold := w.trigger_threshold;
    endpoints := event_publish(
      c.event, c.owner, case c.status when 'completed' then 'task.succeeded' else 'task.failed' end,
      c.task, c.event_body, c.trace_id, c.now);
    return next;
  end loop;
  if w.user_id is not null then perform wallet_write(w); end if;
end $$;

CREATE FUNCTION public.time_sorted_id(p_prefix text, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql
    AS $$
  select p_prefix || lpad(to_hex(floor(extract(epoch from p_now) * 1000)::bigint), 12, '0')
    || right(replace(gen_random_uuid()::text, '-', ''), 20)
$$;

CREATE FUNCTION public.vendor_slots_take(p_line text, p_max integer, p_owner text, p_tasks uuid[], p_epochs integer[]) RETURNS TABLE(task_id uuid, held boolean)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare free integer;
begin
  -- One at a time a line: each sees what the one before has given
  perform pg_advisory_xact_lock(hashtextextended('vendor_slots ' || p_line, 0));
  return query
    with joining as (
      select r.task_id from runs r
      join unnest(p_tasks, p_epochs) w(task, epoch) on r.task_id = w.task and r.epoch = w.epoch
      for update of r skip locked
    )
    update runs r set slot = p_line, slot_held = r.slot_held and r.slot is not distinct from p_line
      from joining j where r.task_id = j.task_id
      returning r.task_id, false;
  select p_max - count(*) into free from runs r where r.slot = p_line and r.slot_held;
  if free > 0 then
    -- Rows that somebody else is just ending are not waited for: no deadlock with task_finish_many
    update runs r set slot_held = true where r.task_id in (
      select n.task_id from runs n
      where n.slot = p_line and not n.slot_held and n.owner is not null
      order by n.task_id limit free
      for update skip locked
    );
  end if;
  return query
    select r.task_id, true from runs r where r.slot = p_line and r.slot_held and r.owner = p_owner
    order by r.task_id;
end $$;

CREATE FUNCTION public.vendor_turns_lease(p_key text, p_count integer, p_spacing interval, p_now timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
  insert into vendor_turns as t (key, next_at) values (p_key, p_now + p_count * p_spacing)
  on conflict (key) do update set next_at = p_count * p_spacing + case
    when t.next_at > p_now + greatest(interval '1 minute', 100 * p_spacing) then p_now
    else greatest(t.next_at, p_now) end
  returning next_at - p_count * p_spacing
$$;

CREATE FUNCTION public.wallet_add(p_user uuid, p_kind text, p_amount bigint, p_operation text, p_note text, p_trace text, p_now timestamp with time zone, OUT w public.wallets, OUT repeated boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
  e wallet_entries;
  settled_max constant bigint := 9000000000000000000;
begin
  w := wallet_lock(p_user);
  if w.user_id is null then
    raise exception 'there is no wallet %', p_user using errcode = 'GW404';
  end if;
  select * into e from wallet_entries where operation_id = p_operation and subject_id is null;
  repeated := found;
  if repeated then
    if (e.user_id, e.kind, e.amount, e.note) is distinct from (p_user, p_kind, p_amount, p_note) then
      raise exception 'operation % was another change', p_operation using errcode = 'GW422';
    end if;
    w.settled := e.settled_after;
    w.held := e.held_after;
    w.state := e.state_after;
    w.trigger_threshold := e.threshold_after;
    return;
  end if;
  if p_amount > settled_max - w.settled then
    raise exception 'the balance would be more than a wallet can hold' using errcode = 'GW410';
  end if;
  if w.settled + p_amount < w.held then
    raise exception 'the adjustment would leave less than what is held' using errcode = 'GW409';
  end if;
  w.settled := w.settled + p_amount;
  w.entry_count := w.entry_count + 1;
  if w.settled >= w.trigger_threshold then
    w.state := 'NORMAL';
    w.rearmed_by_top_up := w.rearmed_by_top_up or p_kind = 'top_up';
  end if;
  perform wallet_write(w);
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, note, trace_id, created_at,
     state_after, threshold_after)
  values
    (p_user, w.entry_count, p_kind, p_amount, w.settled, w.held, p_operation, p_note, p_trace, p_now,
     w.state, w.trigger_threshold);
end $$;

CREATE FUNCTION public.wallet_alert_due(w public.wallets, p_throttle interval, p_now timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
  return w.settled < w.trigger_threshold
    and w.state = 'NORMAL'
    and (w.last_alert_at is null or w.rearmed_by_top_up or w.last_alert_at + p_throttle <= p_now)
    and exists (
      select 1 from webhook_endpoints e
      where e.user_id = w.user_id and e.enabled and e.deleted_at is null and 'balance.low' = any (e.events)
    );
end $$;

CREATE FUNCTION public.wallet_alerts(p_crossed public.wallet_crossing[], p_throttle interval, p_alerts boolean, p_now timestamp with time zone) RETURNS SETOF public.wallet_crossing
    LANGUAGE plpgsql
    AS $$
declare
  crossing wallet_crossing;
  owner wallets;
begin
  foreach crossing in array p_crossed loop
    -- An owner who has been looked at is not looked at again.
    continue when owner.user_id = crossing.user_id;
    select * into owner from wallets u where u.user_id = crossing.user_id;
    if wallet_alert_due(owner, p_throttle, p_now) then
      if not p_alerts then
        raise exception 'an alert is due' using errcode = 'GW428';
      end if;
      update wallets u set state = 'ALERTED', last_alert_at = p_now, rearmed_by_top_up = false
        where u.user_id = crossing.user_id;
      return next crossing;
    end if;
  end loop;
end $$;

CREATE FUNCTION public.wallet_freeze(w public.wallets, p_id uuid, p_kind text, p_amount bigint, p_trace text, p_now timestamp with time zone) RETURNS public.wallets
    LANGUAGE plpgsql
    AS $$
begin
  w.held := w.held + p_amount;
  w.entry_count := w.entry_count + 1;
  insert into holds (id, user_id, kind, amount, created_at) values (p_id, w.user_id, p_kind, p_amount, p_now);
  perform ledger_add(w, 'hold', p_amount, p_id, p_trace, p_now);
  return w;
end $$;

CREATE FUNCTION public.wallet_lock(p_user uuid) RETURNS public.wallets
    LANGUAGE plpgsql
    AS $$
declare w wallets;
begin
  select * into w from wallets where user_id = p_user for no key update;
  return w;
end $$;

CREATE FUNCTION public.wallet_matches_ledger() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if new.entry_count > 0 and not exists (
    select 1 from wallet_entries e
    where e.user_id = new.user_id and e.seq = new.entry_count
      and e.settled_after = new.settled and e.held_after = new.held
  ) then
    raise exception 'wallet % differs from its ledger', new.user_id using errcode = 'GW001';
  end if;
  return null;
end $$;

CREATE TABLE public.holds (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    kind text NOT NULL,
    amount bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    process_id text,
    call json,
    api_key_id text,
    CONSTRAINT holds_amount_check CHECK ((amount >= 0)),
    CONSTRAINT holds_kind_check CHECK ((kind = ANY (ARRAY['task'::text, 'call'::text, 'allowance'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');

CREATE FUNCTION public.wallet_thaw(INOUT w public.wallets, h public.holds, p_captured bigint, p_throttle interval, p_trace text, p_now timestamp with time zone, OUT alert boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
begin
  if p_captured is null or p_captured < 0 or p_captured > h.amount then
    raise exception 'capture % is outside the hold of %', p_captured, h.amount using errcode = 'GW001';
  end if;
  if p_captured > 0 then
    w.settled := w.settled - p_captured;
    w.held := w.held - p_captured;
    w.entry_count := w.entry_count + 1;
    perform ledger_add(w, 'capture', p_captured, h.id, p_trace, p_now);
  end if;
  if p_captured < h.amount or h.amount = 0 then
    w.held := w.held - (h.amount - p_captured);
    w.entry_count := w.entry_count + 1;
    perform ledger_add(w, 'release', h.amount - p_captured, h.id, p_trace, p_now);
  end if;
  alert := p_captured > 0 and wallet_alert_due(w, p_throttle, p_now);
  if alert then
    w.state := 'ALERTED';
    w.last_alert_at := p_now;
    w.rearmed_by_top_up := false;
  end if;
end $$;

CREATE FUNCTION public.wallet_write(w public.wallets) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  update wallets set
      settled = w.settled, held = w.held, entry_count = w.entry_count, state = w.state,
      last_alert_at = w.last_alert_at, rearmed_by_top_up = w.rearmed_by_top_up
    where user_id = w.user_id;
end $$;

CREATE TABLE public.artifacts (
    id text NOT NULL,
    user_id uuid NOT NULL,
    task_id uuid NOT NULL,
    role text NOT NULL,
    mime text NOT NULL,
    bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT artifacts_role_check CHECK ((role = ANY (ARRAY['input'::text, 'output'::text])))
);

CREATE TABLE public.delivery_attempts (
    delivery_id text NOT NULL,
    seq integer NOT NULL,
    endpoint_id text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    status integer,
    failure text,
    detail text,
    answer text,
    remote_address text
)
PARTITION BY RANGE (started_at);

CREATE TABLE public.delivery_queue (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    endpoint_id text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    seq integer DEFAULT 0 NOT NULL,
    owner text,
    claimed_at timestamp with time zone,
    manual boolean DEFAULT false NOT NULL
);

CREATE VIEW public.attempts_and_claims AS
 SELECT delivery_attempts.delivery_id,
    delivery_attempts.seq,
    delivery_attempts.endpoint_id,
    delivery_attempts.due_at,
    delivery_attempts.started_at,
    delivery_attempts.ended_at,
    delivery_attempts.status,
    delivery_attempts.failure,
    delivery_attempts.detail,
    delivery_attempts.answer,
    delivery_attempts.remote_address
   FROM public.delivery_attempts
UNION ALL
 SELECT delivery_queue.id AS delivery_id,
    delivery_queue.seq,
    delivery_queue.endpoint_id,
    delivery_queue.due_at,
    delivery_queue.claimed_at AS started_at,
    NULL::timestamp with time zone AS ended_at,
    NULL::integer AS status,
    NULL::text AS failure,
    NULL::text AS detail,
    NULL::text AS answer,
    NULL::text AS remote_address
   FROM public.delivery_queue
  WHERE (delivery_queue.owner IS NOT NULL);

CREATE TABLE public.calls (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    api_key_id text,
    vendor text NOT NULL,
    model text,
    route text NOT NULL,
    account_id text,
    outcome text NOT NULL,
    http_status integer,
    held bigint NOT NULL,
    captured bigint NOT NULL,
    usage jsonb,
    sandbox boolean NOT NULL,
    trace_id text,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    CONSTRAINT calls_check CHECK (((captured >= 0) AND (captured <= held))),
    CONSTRAINT calls_held_check CHECK ((held >= 0)),
    CONSTRAINT calls_outcome_check CHECK ((outcome = ANY (ARRAY['settled'::text, 'released'::text, 'lost'::text])))
)
PARTITION BY RANGE (created_at);

CREATE TABLE public.calls_20261122 (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    api_key_id text,
    vendor text NOT NULL,
    model text,
    route text NOT NULL,
    account_id text,
    outcome text NOT NULL,
    http_status integer,
    held bigint NOT NULL,
    captured bigint NOT NULL,
    usage jsonb,
    sandbox boolean NOT NULL,
    trace_id text,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    CONSTRAINT calls_check CHECK (((captured >= 0) AND (captured <= held))),
    CONSTRAINT calls_held_check CHECK ((held >= 0)),
    CONSTRAINT calls_outcome_check CHECK ((outcome = ANY (ARRAY['settled'::text, 'released'::text, 'lost'::text])))
)
WITH (fillfactor='100');

CREATE TABLE public.calls_20261123 (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    api_key_id text,
    vendor text NOT NULL,
    model text,
    route text NOT NULL,
    account_id text,
    outcome text NOT NULL,
    http_status integer,
    held bigint NOT NULL,
    captured bigint NOT NULL,
    usage jsonb,
    sandbox boolean NOT NULL,
    trace_id text,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    CONSTRAINT calls_check CHECK (((captured >= 0) AND (captured <= held))),
    CONSTRAINT calls_held_check CHECK ((held >= 0)),
    CONSTRAINT calls_outcome_check CHECK ((outcome = ANY (ARRAY['settled'::text, 'released'::text, 'lost'::text])))
)
WITH (fillfactor='100');

CREATE TABLE public.calls_default (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    api_key_id text,
    vendor text NOT NULL,
    model text,
    route text NOT NULL,
    account_id text,
    outcome text NOT NULL,
    http_status integer,
    held bigint NOT NULL,
    captured bigint NOT NULL,
    usage jsonb,
    sandbox boolean NOT NULL,
    trace_id text,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    CONSTRAINT calls_check CHECK (((captured >= 0) AND (captured <= held))),
    CONSTRAINT calls_held_check CHECK ((held >= 0)),
    CONSTRAINT calls_outcome_check CHECK ((outcome = ANY (ARRAY['settled'::text, 'released'::text, 'lost'::text])))
);

CREATE TABLE public.deliveries (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    endpoint_id text NOT NULL,
    event_id text NOT NULL,
    event_created_at timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    task_id uuid,
    status text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivering'::text, 'succeeded'::text, 'failed'::text, 'skipped'::text])))
)
PARTITION BY RANGE (created_at);

CREATE TABLE public.deliveries_20261122 (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    endpoint_id text NOT NULL,
    event_id text NOT NULL,
    event_created_at timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    task_id uuid,
    status text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivering'::text, 'succeeded'::text, 'failed'::text, 'skipped'::text])))
)
WITH (fillfactor='50');

CREATE TABLE public.deliveries_20261123 (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    endpoint_id text NOT NULL,
    event_id text NOT NULL,
    event_created_at timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    task_id uuid,
    status text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivering'::text, 'succeeded'::text, 'failed'::text, 'skipped'::text])))
)
WITH (fillfactor='50');

CREATE VIEW public.deliveries_and_claims AS
 SELECT d.id,
    d.created_at,
    d.user_id,
    d.endpoint_id,
    d.event_id,
    d.event_created_at,
    d.event_type,
    d.task_id,
        CASE
            WHEN (q.owner IS NULL) THEN d.status
            ELSE 'delivering'::text
        END AS status,
    d.attempts,
        CASE
            WHEN (q.owner IS NULL) THEN d.updated_at
            ELSE GREATEST(d.updated_at, q.claimed_at)
        END AS updated_at,
        CASE
            WHEN (q.owner IS NULL) THEN q.due_at
            ELSE NULL::timestamp with time zone
        END AS next_due_at
   FROM (public.deliveries d
     LEFT JOIN LATERAL ( SELECT c.owner,
            c.claimed_at,
            c.due_at
           FROM public.delivery_queue c
          WHERE (c.id = d.id)
         OFFSET 0) q ON (true));

CREATE TABLE public.deliveries_default (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    endpoint_id text NOT NULL,
    event_id text NOT NULL,
    event_created_at timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    task_id uuid,
    status text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivering'::text, 'succeeded'::text, 'failed'::text, 'skipped'::text])))
)
WITH (fillfactor='50');

CREATE TABLE public.delivery_attempts_20261122 (
    delivery_id text NOT NULL,
    seq integer NOT NULL,
    endpoint_id text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    status integer,
    failure text,
    detail text,
    answer text,
    remote_address text
)
WITH (fillfactor='100');

CREATE TABLE public.delivery_attempts_20261123 (
    delivery_id text NOT NULL,
    seq integer NOT NULL,
    endpoint_id text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    status integer,
    failure text,
    detail text,
    answer text,
    remote_address text
)
WITH (fillfactor='100');

CREATE TABLE public.delivery_attempts_default (
    delivery_id text NOT NULL,
    seq integer NOT NULL,
    endpoint_id text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    status integer,
    failure text,
    detail text,
    answer text,
    remote_address text
);

CREATE TABLE public.events (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    type text NOT NULL,
    task_id uuid,
    body bytea NOT NULL,
    trace_id text
)
PARTITION BY RANGE (created_at);

CREATE TABLE public.events_20261122 (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    type text NOT NULL,
    task_id uuid,
    body bytea NOT NULL,
    trace_id text
)
WITH (fillfactor='100');

CREATE TABLE public.events_20261123 (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    type text NOT NULL,
    task_id uuid,
    body bytea NOT NULL,
    trace_id text
)
WITH (fillfactor='100');

CREATE TABLE public.events_default (
    id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    type text NOT NULL,
    task_id uuid,
    body bytea NOT NULL,
    trace_id text
);

CREATE TABLE public.manage_answers (
    caller text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    claim uuid NOT NULL,
    status integer,
    answer bytea,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.processes (
    id text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    left_at timestamp with time zone
);

CREATE UNLOGGED TABLE public.request_buckets (
    api_key_id text NOT NULL,
    tokens double precision NOT NULL,
    admitted boolean NOT NULL,
    filled_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.runs (
    task_id uuid NOT NULL,
    api_key_id text,
    epoch integer DEFAULT 0 NOT NULL,
    owner text,
    attempt integer DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone NOT NULL,
    slot text,
    slot_held boolean DEFAULT false NOT NULL,
    called boolean DEFAULT false NOT NULL
);

CREATE TABLE public.schema_migrations (
    id integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone NOT NULL
);

CREATE TABLE public.tasks (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    api_key_id text,
    vendor text NOT NULL,
    model text NOT NULL,
    action text NOT NULL,
    result_kind text NOT NULL,
    status text NOT NULL,
    body jsonb NOT NULL,
    sandbox boolean NOT NULL,
    price bigint NOT NULL,
    captured bigint,
    result jsonb,
    error jsonb,
    trace_id text,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT tasks_check CHECK (((captured >= 0) AND (captured <= price))),
    CONSTRAINT tasks_price_check CHECK ((price >= 0)),
    CONSTRAINT tasks_result_kind_check CHECK ((result_kind = ANY (ARRAY['images'::text, 'videos'::text, 'audios'::text]))),
    CONSTRAINT tasks_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'processing'::text, 'completed'::text, 'failed'::text])))
);

CREATE TABLE public.users (
    id uuid NOT NULL,
    email text NOT NULL,
    name text,
    password_hash text,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.vendor_attempts (
    task_id uuid NOT NULL,
    n integer NOT NULL,
    vendor text NOT NULL,
    account_id text NOT NULL,
    body_hash bytea NOT NULL,
    state text NOT NULL,
    handle jsonb,
    failure text,
    started_at timestamp with time zone NOT NULL,
    answered_at timestamp with time zone,
    CONSTRAINT vendor_attempts_state_check CHECK ((state = ANY (ARRAY['submitting'::text, 'submitted'::text, 'refused'::text, 'ambiguous'::text])))
);

CREATE TABLE public.vendor_callbacks (
    digest bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.vendor_faults (
    key text NOT NULL,
    until timestamp with time zone NOT NULL
);

CREATE TABLE public.vendor_turns (
    key text NOT NULL,
    next_at timestamp with time zone NOT NULL
);

CREATE TABLE public.wallet_audit_rounds (
    only_row boolean DEFAULT true NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    wallets bigint NOT NULL,
    CONSTRAINT wallet_audit_rounds_only_row_check CHECK (only_row)
);

CREATE TABLE public.wallet_audits (
    user_id uuid NOT NULL,
    seq bigint NOT NULL,
    settled bigint NOT NULL,
    held bigint NOT NULL,
    chained boolean NOT NULL,
    drifting boolean NOT NULL,
    checked_at timestamp with time zone NOT NULL
);

CREATE TABLE public.wallet_entries (
    user_id uuid NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    amount bigint NOT NULL,
    settled_after bigint NOT NULL,
    held_after bigint NOT NULL,
    operation_id text NOT NULL,
    subject_id uuid,
    note text,
    trace_id text,
    created_at timestamp with time zone NOT NULL,
    state_after text,
    threshold_after bigint,
    CONSTRAINT wallet_entries_amount CHECK (
CASE kind
    WHEN 'adjustment'::text THEN (amount <> 0)
    WHEN 'top_up'::text THEN (amount > 0)
    WHEN 'capture'::text THEN (amount > 0)
    ELSE (amount >= 0)
END),
    CONSTRAINT wallet_entries_check CHECK (((kind = 'adjustment'::text) OR (amount >= 0))),
    CONSTRAINT wallet_entries_check1 CHECK (((held_after >= 0) AND (settled_after >= held_after))),
    CONSTRAINT wallet_entries_kind_check CHECK ((kind = ANY (ARRAY['top_up'::text, 'adjustment'::text, 'hold'::text, 'capture'::text, 'release'::text]))),
    CONSTRAINT wallet_entries_operation CHECK (
CASE
    WHEN (kind = ANY (ARRAY['hold'::text, 'capture'::text, 'release'::text])) THEN ((subject_id IS NOT NULL) AND (operation_id = ((kind || ':'::text) || subject_id)))
    ELSE ((subject_id IS NULL) AND (state_after IS NOT NULL) AND (threshold_after IS NOT NULL))
END),
    CONSTRAINT wallet_entries_seq_check CHECK ((seq > 0))
);

CREATE TABLE public.webhook_endpoints (
    id text NOT NULL,
    user_id uuid NOT NULL,
    url text NOT NULL,
    events text[] NOT NULL,
    description text,
    enabled boolean NOT NULL,
    secret bytea NOT NULL,
    secret_preview text NOT NULL,
    previous_secret bytea,
    previous_secret_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone
);

ALTER TABLE ONLY public.calls ATTACH PARTITION public.calls_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');

ALTER TABLE ONLY public.calls ATTACH PARTITION public.calls_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');

ALTER TABLE ONLY public.calls ATTACH PARTITION public.calls_default DEFAULT;

ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');

ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');

ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_default DEFAULT;

ALTER TABLE ONLY public.delivery_attempts ATTACH PARTITION public.delivery_attempts_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');

ALTER TABLE ONLY public.delivery_attempts ATTACH PARTITION public.delivery_attempts_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');

ALTER TABLE ONLY public.delivery_attempts ATTACH PARTITION public.delivery_attempts_default DEFAULT;

ALTER TABLE ONLY public.events ATTACH PARTITION public.events_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');

ALTER TABLE ONLY public.events ATTACH PARTITION public.events_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');

ALTER TABLE ONLY public.events ATTACH PARTITION public.events_default DEFAULT;

INSERT INTO public.api_keys VALUES
	('key_01a202d3db4876bdab856c1348c7eb51', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', '\x42726c12603adb6279e410aa02847026d35e5340fa7678c208d4752a31aba7f8', 'sk-...djTb', 'main', '{inference,manage}', '2026-11-22 10:36:08.392+00', NULL, NULL, '2026-11-22 10:36:08.445+00'),
	('key_01a202d3db6d7e578d7bca4eec269678', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', '\x018b9e73501896dca29c6e528ed539c3e6b4c1afc216a8c3d9095f81001ab852', 'sk-...gTmb', 'old', '{inference}', '2026-11-22 10:36:08.429+00', NULL, '2026-11-22 10:36:08.449+00', NULL);

INSERT INTO public.artifacts VALUES
	('art_01a202d3e8467ae299f149a121fa1ec3', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', 'output', 'image/png', 6381, '\xd6394d76a06ec796bd4961d9f32206cb5f9024dc334b9613a1caa8ddf9c114e1', '2026-11-22 10:36:11.718+00', '2026-11-23 10:36:11.718+00');

INSERT INTO public.calls_20261122 VALUES
	('01a202d3-f686-7b8f-9618-8d927882214b', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'b7283a7db3977013ecb49587239c3e6a', '2026-11-22 10:36:15.368+00', '2026-11-22 10:36:15.389+00'),
	('01a202d3-fbb9-7370-a26e-49ed0f2d373b', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '2d0c866fbdd3f02807f8a6c1d68d77ad', '2026-11-22 10:36:16.703+00', '2026-11-22 10:36:16.708+00'),
	('01a202d3-fbbf-7dfe-a300-7ddccda11bf4', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'b4b2a41089badf6ce8a5ff7943f3ff14', '2026-11-22 10:36:16.703+00', '2026-11-22 10:36:16.708+00'),
	('01a202d3-fbc2-7c0a-9230-446b89325f09', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'c36ab92a8968397d4d482da5a59094e0', '2026-11-22 10:36:16.708+00', '2026-11-22 10:36:16.725+00'),
	('01a202d3-fbc4-7e43-8039-c11a0224d887', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '495e87c29688593a428f858ba0b7b46f', '2026-11-22 10:36:16.708+00', '2026-11-22 10:36:16.725+00'),
	('01a202d3-fbde-7635-96f4-0c02b28d0d73', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '304dc77759c93db879440e7b0239a18d', '2026-11-22 10:36:16.735+00', '2026-11-22 10:36:16.74+00'),
	('01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'e29278718f508c13167c855991b12144', '2026-11-22 10:36:16.735+00', '2026-11-22 10:36:16.74+00'),
	('01a202d3-fbe7-7e4c-9450-53a058b3c4cc', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'cf8f8cdfd0c6f765ec28ef328a7d615f', '2026-11-22 10:36:16.744+00', '2026-11-22 10:36:16.75+00'),
	('01a202d3-fbed-7aac-a619-02a37b7d3003', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '3d5110993cabd1e392d28d09f4bef3d4', '2026-11-22 10:36:16.75+00', '2026-11-22 10:36:16.753+00'),
	('01a202d3-fbf8-768a-ad64-eebbbca5dbca', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '64234455e6aaeba44d4402a02b0937e1', '2026-11-22 10:36:16.76+00', '2026-11-22 10:36:16.764+00'),
	('01a202d3-fbfa-7ceb-8391-72dab6eaac41', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'b9646c32dd1bdbe097a1ad6b25f250c5', '2026-11-22 10:36:16.764+00', '2026-11-22 10:36:16.769+00'),
	('01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '2a29de75354123f8927ad7c941675ab4', '2026-11-22 10:36:16.769+00', '2026-11-22 10:36:16.775+00'),
	('01a202d3-fc05-745a-885e-5d58beca87a9', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '398ae1fdf31a8c1baba1fae2ecdb70ad', '2026-11-22 10:36:16.775+00', '2026-11-22 10:36:16.78+00'),
	('01a202d3-fc14-7783-8eed-b8ff513f3ebc', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'be2ac756bb55c195f7f7d5cc77aa6030', '2026-11-22 10:36:16.792+00', '2026-11-22 10:36:16.797+00'),
	('01a202d3-fc15-7189-8845-124e8aa64197', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '25343c03a7be99b2d50d955639e397c2', '2026-11-22 10:36:16.792+00', '2026-11-22 10:36:16.797+00'),
	('01a202d3-fc15-7ec8-8626-aafd55d95baf', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '462a131fbbf758441963f61c1790ff3d', '2026-11-22 10:36:16.792+00', '2026-11-22 10:36:16.797+00'),
	('01a202d3-fc16-74a8-b667-4c81030253ae', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '8ea1bde1774338db865085abb3091a32', '2026-11-22 10:36:16.792+00', '2026-11-22 10:36:16.797+00'),
	('01a202d3-fc31-7899-b1ee-73f60606674f', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'ccb3e21ad078d6178f882bde2e5aab8b', '2026-11-22 10:36:16.817+00', '2026-11-22 10:36:16.828+00'),
	('01a202d3-fc28-7ad1-8596-38eadb75dd3e', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '80bd301318c51ac8011fa9e383e928d5', '2026-11-22 10:36:16.82+00', '2026-11-22 10:36:16.826+00'),
	('01a202d3-fc29-7102-ae2f-6c07d080719b', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, 'a590e2962bafad0dd9a287a2e7852d79', '2026-11-22 10:36:16.82+00', '2026-11-22 10:36:16.826+00'),
	('01a202d3-fc2b-786d-ba61-7fa9a624eaa1', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'openai', 'gpt-4o-mini', 'POST /v1/chat/completions', NULL, 'settled', 200, 2490, 1290, '{"counted": false, "inputTokens": 22, "outputTokens": 16, "reasoningTokens": 0, "cacheWriteTokens": 0, "cachedInputTokens": 0, "cacheWriteLongTokens": 0}', true, '70754dae81daaaa8eea239fba9078961', '2026-11-22 10:36:16.82+00', '2026-11-22 10:36:16.826+00');

INSERT INTO public.deliveries_20261122 VALUES
	('whd_01a202d3dbb94825bf74d9b23e85d982', '2026-11-22 10:36:08.505+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3dbb975beacad19bcd250d686', '2026-11-22 10:36:08.505+00', 'task.created', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', 'succeeded', 2, '2026-11-22 10:36:31+00'),
	('whd_01a202d3dc5645ee9760a8ca3fafa545', '2026-11-22 10:36:08.662+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3dc56782d95e744868813d792', '2026-11-22 10:36:08.662+00', 'task.created', '01a202d3-dc56-7825-a0b2-bdc724ee4115', 'failed', 2, '2026-11-22 10:36:31+00'),
	('whd_01a202d3dce849c7be47448bbaa6f9f7', '2026-11-22 10:36:08.808+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3dce877d7b29e03558cf94a3d', '2026-11-22 10:36:08.808+00', 'task.failed', '01a202d3-dc56-7825-a0b2-bdc724ee4115', 'pending', 1, '2026-11-22 10:36:08.847+00'),
	('whd_01a202d3dbb949e2a33532a038f0255c', '2026-11-22 10:36:08.505+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3dba979f1ba620c1aad21d1d5', 'evt_01a202d3dbb975beacad19bcd250d686', '2026-11-22 10:36:08.505+00', 'task.created', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', 'skipped', 1, '2026-11-22 10:36:09.906+00'),
	('whd_01a202d3dc5646edacfc3e615e7d1c68', '2026-11-22 10:36:08.662+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3dc247ee7b68d69bf4f0edcf9', 'evt_01a202d3dc56782d95e744868813d792', '2026-11-22 10:36:08.662+00', 'task.created', '01a202d3-dc56-7825-a0b2-bdc724ee4115', 'skipped', 1, '2026-11-22 10:36:09.906+00'),
	('whd_01a202d3e8654c7392283f22215948e0', '2026-11-22 10:36:11.749+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3e8657102be66abff5f6cb101', '2026-11-22 10:36:11.749+00', 'balance.low', NULL, 'pending', 1, '2026-11-22 10:36:11.772+00'),
	('whd_01a202d3e8654d459d2192ab43da0e8e', '2026-11-22 10:36:11.749+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3e8657f47b293d918b66a2d2a', '2026-11-22 10:36:11.749+00', 'task.succeeded', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', 'pending', 1, '2026-11-22 10:36:11.772+00'),
	('whd_01a202d3f6a44d55bfd867bb6f9d756b', '2026-11-22 10:36:15.396+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3f6a47bb8b73f915cbd19a0a7', '2026-11-22 10:36:15.396+00', 'task.created', '01a202d3-f6a4-7373-971b-744a0e2bcaba', 'pending', 1, '2026-11-22 10:36:15.431+00'),
	('whd_01a202d3f6c248d787092fd9a6dcbc31', '2026-11-22 10:36:15.426+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3f6c27779beeb04b2c633a604', '2026-11-22 10:36:15.426+00', 'task.created', '01a202d3-f6c2-746c-8a13-9d9614b9f80c', 'pending', 1, '2026-11-22 10:36:15.463+00'),
	('whd_01a202d3f6de43fbb6fdfd0253640e97', '2026-11-22 10:36:15.454+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3f6de7205ae47254a26e8cf73', '2026-11-22 10:36:15.454+00', 'task.created', '01a202d3-f6de-772d-a355-56688555c584', 'pending', 1, '2026-11-22 10:36:15.492+00'),
	('whd_01a202d3f6f24a5f99d4503e57389aab', '2026-11-22 10:36:15.474+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'whe_01a202d3db9279648ee8ea957f12dd6d', 'evt_01a202d3f6f2729d87083a84ef06d48e', '2026-11-22 10:36:15.474+00', 'task.created', '01a202d3-f6f2-7898-8016-677ec953e6c8', 'pending', 1, '2026-11-22 10:36:15.495+00');

INSERT INTO public.delivery_attempts_20261122 VALUES
	('whd_01a202d3dbb94825bf74d9b23e85d982', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:08.505+00', '2026-11-22 10:36:08.544+00', '2026-11-22 10:36:08.58+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3dbb949e2a33532a038f0255c', 1, 'whe_01a202d3dba979f1ba620c1aad21d1d5', '2026-11-22 10:36:08.505+00', '2026-11-22 10:36:08.569+00', '2026-11-22 10:36:08.596+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3dc5645ee9760a8ca3fafa545', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:08.662+00', '2026-11-22 10:36:08.688+00', '2026-11-22 10:36:08.755+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3dc5646edacfc3e615e7d1c68', 1, 'whe_01a202d3dc247ee7b68d69bf4f0edcf9', '2026-11-22 10:36:08.662+00', '2026-11-22 10:36:08.719+00', '2026-11-22 10:36:08.769+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3dce849c7be47448bbaa6f9f7', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:08.808+00', '2026-11-22 10:36:08.834+00', '2026-11-22 10:36:08.847+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3e8654c7392283f22215948e0', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:11.749+00', '2026-11-22 10:36:11.764+00', '2026-11-22 10:36:11.772+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3e8654d459d2192ab43da0e8e', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:11.749+00', '2026-11-22 10:36:11.764+00', '2026-11-22 10:36:11.772+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3f6a44d55bfd867bb6f9d756b', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:15.396+00', '2026-11-22 10:36:15.417+00', '2026-11-22 10:36:15.431+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3f6c248d787092fd9a6dcbc31', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:15.426+00', '2026-11-22 10:36:15.446+00', '2026-11-22 10:36:15.463+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3f6de43fbb6fdfd0253640e97', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:15.454+00', '2026-11-22 10:36:15.47+00', '2026-11-22 10:36:15.492+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3f6f24a5f99d4503e57389aab', 1, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:15.474+00', '2026-11-22 10:36:15.488+00', '2026-11-22 10:36:15.495+00', NULL, 'connect', 'connect ECONNREFUSED 127.0.0.1:9', NULL, NULL),
	('whd_01a202d3dbb94825bf74d9b23e85d982', 2, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:23.58+00', '2026-11-22 10:36:30+00', '2026-11-22 10:36:31+00', 200, NULL, NULL, 'ok', '192.0.2.1'),
	('whd_01a202d3dc5645ee9760a8ca3fafa545', 2, 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:23.755+00', '2026-11-22 10:36:30+00', '2026-11-22 10:36:31+00', 500, 'status', 'status 500', 'broken', '192.0.2.1');

INSERT INTO public.delivery_queue VALUES
	('whd_01a202d3e8654c7392283f22215948e0', '2026-11-22 10:36:11.749+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:26.772+00', 1, 1, NULL, '2026-11-22 10:36:11.764+00', false),
	('whd_01a202d3f6a44d55bfd867bb6f9d756b', '2026-11-22 10:36:15.396+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:30.431+00', 1, 1, NULL, '2026-11-22 10:36:15.417+00', false),
	('whd_01a202d3f6c248d787092fd9a6dcbc31', '2026-11-22 10:36:15.426+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:30.463+00', 1, 1, NULL, '2026-11-22 10:36:15.446+00', false),
	('whd_01a202d3f6de43fbb6fdfd0253640e97', '2026-11-22 10:36:15.454+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:30.492+00', 1, 1, NULL, '2026-11-22 10:36:15.47+00', false),
	('whd_01a202d3f6f24a5f99d4503e57389aab', '2026-11-22 10:36:15.474+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:30.495+00', 1, 1, NULL, '2026-11-22 10:36:15.488+00', false),
	('whd_01a202d3dce849c7be47448bbaa6f9f7', '2026-11-22 10:36:08.808+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:23.847+00', 1, 2, 'proc_6a447bfe-f286-4326-b643-6743958b2c20', '2026-11-22 10:36:30+00', false),
	('whd_01a202d3e8654d459d2192ab43da0e8e', '2026-11-22 10:36:11.749+00', 'whe_01a202d3db9279648ee8ea957f12dd6d', '2026-11-22 10:36:26.772+00', 1, 2, 'proc_6a447bfe-f286-4326-b643-6743958b2c20', '2026-11-22 10:36:30+00', false);

INSERT INTO public.events_20261122 VALUES
	('evt_01a202d3dbb975beacad19bcd250d686', '2026-11-22 10:36:08.505+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.created', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', '\x7b226964223a226576745f3031613230326433646262393735626561636164313962636432353064363836222c2274797065223a227461736b2e63726561746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3530355a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d646262392d376131632d623163342d666461333039333963376437222c22737461747573223a2270656e64696e67222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3530355a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a30382e3530355a227d7d7d7d', '96f18c120a813d2bd6bb67dbbf6caa5e'),
	('evt_01a202d3dc56782d95e744868813d792', '2026-11-22 10:36:08.662+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.created', '01a202d3-dc56-7825-a0b2-bdc724ee4115', '\x7b226964223a226576745f3031613230326433646335363738326439356537343438363838313364373932222c2274797065223a227461736b2e63726561746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3636325a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d646335362d373832352d613062322d626463373234656534313135222c22737461747573223a2270656e64696e67222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3636325a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a30382e3636325a227d7d7d7d', '84c1b7b27dcba1d8017c240ebc148506'),
	('evt_01a202d3dce877d7b29e03558cf94a3d', '2026-11-22 10:36:08.808+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.failed', '01a202d3-dc56-7825-a0b2-bdc724ee4115', '\x7b226964223a226576745f3031613230326433646365383737643762323965303335353863663934613364222c2274797065223a227461736b2e6661696c6564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3830385a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d646335362d373832352d613062322d626463373234656534313135222c22737461747573223a226661696c6564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3636325a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a30382e3830385a222c226572726f72223a7b22636f6465223a343030342c227469746c65223a2243616e63656c6c6564222c2264657461696c223a22546865207461736b207761732063616e63656c6c656420627920697473206f776e6572227d7d7d7d7d', '84c1b7b27dcba1d8017c240ebc148506'),
	('evt_01a202d3e8657f47b293d918b66a2d2a', '2026-11-22 10:36:11.749+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.succeeded', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', '\x7b226964223a226576745f3031613230326433653836353766343762323933643931386236366132643261222c2274797065223a227461736b2e737563636565646564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31312e3734395a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d646262392d376131632d623163342d666461333039333963376437222c22737461747573223a22636f6d706c65746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a30382e3530355a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a31312e3734395a227d2c22696d61676573223a5b22687474703a2f2f676174657761792e746573742f6172746966616374732f6172745f30316132303264336538343637616532393966313439613132316661316563333f657870697265733d31373935343330313731267369676e61747572653d32313133373763396431346636393163656335626239303531393538376232323236323833306136613736366437663536363964376232616533373035366433225d7d7d7d', '96f18c120a813d2bd6bb67dbbf6caa5e'),
	('evt_01a202d3e8657102be66abff5f6cb101', '2026-11-22 10:36:11.749+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'balance.low', NULL, '\x7b226964223a226576745f3031613230326433653836353731303262653636616266663566366362313031222c2274797065223a2262616c616e63652e6c6f77222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31312e3734395a222c2264617461223a7b22757365725f6964223a2230316132303264332d646133332d373333652d623765342d386362643263333931346637222c227061796c6f6164223a7b22617661696c61626c655f62616c616e6365223a223939342e3530222c22747269676765725f7468726573686f6c64223a22313030302e3030222c2263757272656e6379223a2263726564697473227d7d7d', NULL),
	('evt_01a202d3f6a47bb8b73f915cbd19a0a7', '2026-11-22 10:36:15.396+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.created', '01a202d3-f6a4-7373-971b-744a0e2bcaba', '\x7b226964223a226576745f3031613230326433663661343762623862373366393135636264313961306137222c2274797065223a227461736b2e63726561746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3339365a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d663661342d373337332d393731622d373434613065326263616261222c22737461747573223a2270656e64696e67222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3339365a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a31352e3339365a227d7d7d7d', 'ad8f034a18f15e34bbe0efb6ac32cdea'),
	('evt_01a202d3f6c27779beeb04b2c633a604', '2026-11-22 10:36:15.426+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.created', '01a202d3-f6c2-746c-8a13-9d9614b9f80c', '\x7b226964223a226576745f3031613230326433663663323737373962656562303462326336333361363034222c2274797065223a227461736b2e63726561746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3432365a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d663663322d373436632d386131332d396439363134623966383063222c22737461747573223a2270656e64696e67222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3432365a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a31352e3432365a227d7d7d7d', 'fbad89cca76d16491f7b8cd132f199ab'),
	('evt_01a202d3f6de7205ae47254a26e8cf73', '2026-11-22 10:36:15.454+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.created', '01a202d3-f6de-772d-a355-56688555c584', '\x7b226964223a226576745f3031613230326433663664653732303561653437323534613236653863663733222c2274797065223a227461736b2e63726561746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3435345a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d663664652d373732642d613335352d353636383835353563353834222c22737461747573223a2270656e64696e67222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3435345a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a31352e3435345a227d7d7d7d', 'dd497f4ea68177cca517bdb5fff395ef'),
	('evt_01a202d3f6f2729d87083a84ef06d48e', '2026-11-22 10:36:15.474+00', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task.created', '01a202d3-f6f2-7898-8016-677ec953e6c8', '\x7b226964223a226576745f3031613230326433663666323732396438373038336138346566303664343865222c2274797065223a227461736b2e63726561746564222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3437345a222c2264617461223a7b2276656e646f72223a22616c6962616261222c226d6f64656c5f6e616d65223a22746578742d746f2d696d6167652d6d6178222c227061796c6f6164223a7b227461736b5f696e666f223a7b226964223a2230316132303264332d663666322d373839382d383031362d363737656339353365366338222c22737461747573223a2270656e64696e67222c22637265617465645f6174223a22323032362d31312d32325431303a33363a31352e3437345a222c22757064617465645f6174223a22323032362d31312d32325431303a33363a31352e3437345a227d7d7d7d', '9420f6c816080dd03b7947cf3d946728');

INSERT INTO public.holds VALUES
	('01a202d3-f6a4-7373-971b-744a0e2bcaba', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task', 7500000, '2026-11-22 10:36:15.396+00', NULL, NULL, NULL),
	('01a202d3-f6c2-746c-8a13-9d9614b9f80c', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task', 7500000, '2026-11-22 10:36:15.426+00', NULL, NULL, NULL),
	('01a202d3-f6de-772d-a355-56688555c584', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task', 7500000, '2026-11-22 10:36:15.454+00', NULL, NULL, NULL),
	('01a202d3-f6f2-7898-8016-677ec953e6c8', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'task', 7500000, '2026-11-22 10:36:15.474+00', NULL, NULL, NULL),
	('01a202d3-fc3c-7559-9007-137ce8d7fad5', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'allowance', 39840, '2026-11-22 10:36:16.828+00', 'proc_6a447bfe-f286-4326-b643-6743958b2c20', NULL, 'key_01a202d3db4876bdab856c1348c7eb51'),
	('01a202d3-fd00-7000-8000-000000000001', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'call', 120000, '2026-11-22 10:36:17+00', 'proc_6a447bfe-f286-4326-b643-6743958b2c20', '{"key" : "key_01a202d3db4876bdab856c1348c7eb51", "vendor" : "openai", "model" : "gpt-4o-mini", "route" : "POST /v1/chat/completions", "sandbox" : true, "trace" : "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}', NULL);

INSERT INTO public.idempotency_keys VALUES
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key-1', '\x4eae9cd7113524b0343794a38096a57aee8d8b1172e5e6b95b1aa9996725f680', 202, '{"task_info":{"id":"01a202d3-dbb9-7a1c-b1c4-fda30939c7d7","created_at":"2026-11-22T10:36:08.505Z","updated_at":"2026-11-22T10:36:08.505Z"}}', 7500000, 994500000, '2026-11-22 10:36:08.505+00'),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key-w0', '\xa6aac28b4eb044fae86ac054145099da7bbd17a6dcede89fb9aad938ab92b5f8', 202, '{"task_info":{"id":"01a202d3-f6a4-7373-971b-744a0e2bcaba","created_at":"2026-11-22T10:36:15.396Z","updated_at":"2026-11-22T10:36:15.396Z"}}', 7500000, 986998710, '2026-11-22 10:36:15.396+00'),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key-w1', '\x746f5534e1209e06b2ab1e39bf66888907ea6b8c634974c7051d52619521ea4b', 202, '{"task_info":{"id":"01a202d3-f6c2-746c-8a13-9d9614b9f80c","created_at":"2026-11-22T10:36:15.426Z","updated_at":"2026-11-22T10:36:15.426Z"}}', 7500000, 979498710, '2026-11-22 10:36:15.426+00'),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key-w2', '\xfa14348d1dbf598974241a9d109c0ba3a7232214344829b2501191bb1f67a8ad', 202, '{"task_info":{"id":"01a202d3-f6de-772d-a355-56688555c584","created_at":"2026-11-22T10:36:15.454Z","updated_at":"2026-11-22T10:36:15.454Z"}}', 7500000, 971998710, '2026-11-22 10:36:15.454+00'),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key-w3', '\xfa59a441ce997af1e4d03d38ee0f87e200e17aacb4bafc15ec1ef6cd9265e741', 202, '{"task_info":{"id":"01a202d3-f6f2-7898-8016-677ec953e6c8","created_at":"2026-11-22T10:36:15.474Z","updated_at":"2026-11-22T10:36:15.474Z"}}', 7500000, 964498710, '2026-11-22 10:36:15.474+00');

INSERT INTO public.manage_answers VALUES
	('operator', 'user-ada', '\x04148669860228a44a9c851bb382e106103eb3e61cd04e2aeaa29b71a2f21b84', 'de21ce9f-6c63-4652-8095-86b84d0d06d2', 201, '\x7fb3022ae109b9fd72b57f2989803f693336a266f426c6437ee5fda422ed34b6476579e4b94611fcc1231383ed757a155fd28a1e3f17b77b1874be74365824f015825b7622ed64a3ebeb072aebd2d2363a8535cffca8f39417e4ef31b85c68f197dbe0922e9648b82c5d25a826330f06d0fb7152838ebb092b61964d5a6b8775d8aa611ef51a3c3e51c25dd16bb37eb05a970675b3ab4d79', '2026-11-22 10:36:08.052+00'),
	('operator', 'in-progress', '\xa1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa', '01a202d3-fd00-7000-8000-000000000002', NULL, NULL, '2026-11-22 10:36:17+00');

INSERT INTO public.processes VALUES
	('proc_6a447bfe-f286-4326-b643-6743958b2c20', '2026-11-22 10:36:06.932+00', '2026-11-22 10:36:15.862+00', NULL),
	('proc_left', '2026-11-22 09:00:00+00', '-infinity', '2026-11-22 10:00:00+00');

INSERT INTO public.request_buckets VALUES
	('key_01a202d3db4876bdab856c1348c7eb51', 5990.9, true, '2026-11-22 10:36:16.837+00');

INSERT INTO public.runs VALUES
	('01a202d3-f6de-772d-a355-56688555c584', 'key_01a202d3db4876bdab856c1348c7eb51', 1, 'proc_6a447bfe-f286-4326-b643-6743958b2c20', 1, '2026-11-22 11:36:15.454+00', NULL, false, false),
	('01a202d3-f6f2-7898-8016-677ec953e6c8', 'key_01a202d3db4876bdab856c1348c7eb51', 0, NULL, 0, '2026-11-22 11:36:15.474+00', NULL, false, false),
	('01a202d3-f6a4-7373-971b-744a0e2bcaba', 'key_01a202d3db4876bdab856c1348c7eb51', 1, 'proc_6a447bfe-f286-4326-b643-6743958b2c20', 1, '2026-11-22 11:36:15.396+00', 'alibaba:a', true, false),
	('01a202d3-f6c2-746c-8a13-9d9614b9f80c', 'key_01a202d3db4876bdab856c1348c7eb51', 1, 'proc_6a447bfe-f286-4326-b643-6743958b2c20', 1, '2026-11-22 11:36:15.426+00', 'alibaba:a', false, true);

INSERT INTO public.schema_migrations VALUES
	(1, '0001_tables', '9ea74f8d63fd672b26b678a9111308c93d46e77a2a211f26fd99364d2a30c0ff', '2026-11-22 10:36:06.238+00'),
	(2, '0002_functions', '0e87926958eb9ead801cf34b1fb38afa21faa697fb6e624b263ef4e64157c32f', '2026-11-22 10:36:06.302+00'),
	(3, '0003_webhooks', '62f3acd856fba9b43dea99992cd0ace8c392ea6ca9de588e025edabf19449caa', '2026-11-22 10:36:06.366+00'),
	(4, '0004_wallet', 'cab68ce6ca21a1987caa8d27704e4bba9acfa0bd89b61ba65a0334a3870a72b7', '2026-11-22 10:36:06.492+00'),
	(5, '0005_tasks', 'e062215a7e2186133f2fbb44dcbc8d87300cb81d66aec385c629af71b798ac3a', '2026-11-22 10:36:06.528+00'),
	(6, '0006_vendors', '9f1dadcb9db0733fc696ead7398e1b9986a0401a1a2ed100826593da8d9e5a4d', '2026-11-22 10:36:06.561+00'),
	(7, '0007_passthrough', 'b73dc96a7fc978e4c7cc1b0b1ef033d4ffd14fea1d2bb8f8a584177af6604a41', '2026-11-22 10:36:06.628+00'),
	(8, '0008_plans', '9dee2482b627a69fc51882bd99ea2c21eb73405f8c2e97157e1a8f09353a733a', '2026-11-22 10:36:06.648+00'),
	(9, '0009_clocks', 'b39643e9dff3a4de1cfeb66fff3c158f3d091c65703ea7ca4216e6ad6e5d612b', '2026-11-22 10:36:06.657+00'),
	(10, '0010_slots', 'd30a10022a9769e80d622536c446112b26a72766b894942424cecde56ebaf8a0', '2026-11-22 10:36:06.675+00'),
	(11, '0011_call_receipts', 'b1341a4825cfec119cb4ef329ec5d5358e2584469678cb1d5471abc54272851f', '2026-11-22 10:36:06.719+00'),
	(12, '0012_delivery_room', '66241fc2d96611c2728909c389a5b38287f94e1def3820ec3fe24ff7c0ffc43e', '2026-11-22 10:36:06.741+00'),
	(13, '0013_callbacks', 'b529290fd7fcc55cc393e1b0b2704e03ddd5978d7add2f8169e94d3097885ecf', '2026-11-22 10:36:06.76+00'),
	(14, '0014_calls', 'a1f7af7faf248bd57ca5e73ff9f21884dae2d4b712f91ab97baa719f671b3158', '2026-11-22 10:36:06.796+00'),
	(15, '0015_deliveries', '32c08387ac76324b9203c083be0caab11fadadf980508ba2a95eb6a5f73f8d96', '2026-11-22 10:36:06.841+00'),
	(16, '0016_allowances', '8fcca84011eb53acceea4cb468e18afa6f3f97868cff90528e5b7460d00e5a67', '2026-11-22 10:36:06.859+00'),
	(17, '0017_settling', '4e4cacc27257c3c05609f17018397a1144804ef51fe136e50aea702e18b1a93e', '2026-11-22 10:36:06.869+00');

INSERT INTO public.tasks VALUES
	('01a202d3-dc56-7825-a0b2-bdc724ee4115', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'alibaba', 'text-to-image-max', 'generation', 'images', 'failed', '{"size": "1664*928", "prompt": "A cancelled turtle", "prompt_extend": true, "safety_filter": true}', true, 7500000, 0, NULL, '{"code": 4004, "title": "Cancelled", "detail": "The task was cancelled by its owner"}', '84c1b7b27dcba1d8017c240ebc148506', '2026-11-22 10:36:08.662+00', '2026-11-22 10:36:08.7+00', '2026-11-22 10:36:08.808+00'),
	('01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'alibaba', 'text-to-image-max', 'generation', 'images', 'completed', '{"size": "1664*928", "prompt": "A turtle", "prompt_extend": true, "safety_filter": true}', true, 7500000, 7500000, '["http://gateway.test/artifacts/art_01a202d3e8467ae299f149a121fa1ec3?expires=1795430171&signature=211377c9d14f691cec5bb90519587b22262830a6a766d7f5669d7b2ae37056d3"]', NULL, '96f18c120a813d2bd6bb67dbbf6caa5e', '2026-11-22 10:36:08.505+00', '2026-11-22 10:36:08.534+00', '2026-11-22 10:36:11.749+00'),
	('01a202d3-f6a4-7373-971b-744a0e2bcaba', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'alibaba', 'text-to-image-max', 'generation', 'images', 'processing', '{"size": "1664*928", "prompt": "A turtle on the way 0", "prompt_extend": true, "safety_filter": true}', true, 7500000, NULL, NULL, NULL, 'ad8f034a18f15e34bbe0efb6ac32cdea', '2026-11-22 10:36:15.396+00', '2026-11-22 10:36:15.42+00', '2026-11-22 10:36:15.42+00'),
	('01a202d3-f6c2-746c-8a13-9d9614b9f80c', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'alibaba', 'text-to-image-max', 'generation', 'images', 'processing', '{"size": "1664*928", "prompt": "A turtle on the way 1", "prompt_extend": true, "safety_filter": true}', true, 7500000, NULL, NULL, NULL, 'fbad89cca76d16491f7b8cd132f199ab', '2026-11-22 10:36:15.426+00', '2026-11-22 10:36:15.45+00', '2026-11-22 10:36:15.45+00'),
	('01a202d3-f6de-772d-a355-56688555c584', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'alibaba', 'text-to-image-max', 'generation', 'images', 'processing', '{"size": "1664*928", "prompt": "A turtle on the way 2", "prompt_extend": true, "safety_filter": true}', true, 7500000, NULL, NULL, NULL, 'dd497f4ea68177cca517bdb5fff395ef', '2026-11-22 10:36:15.454+00', '2026-11-22 10:36:15.491+00', '2026-11-22 10:36:15.491+00'),
	('01a202d3-f6f2-7898-8016-677ec953e6c8', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'key_01a202d3db4876bdab856c1348c7eb51', 'alibaba', 'text-to-image-max', 'generation', 'images', 'pending', '{"size": "1664*928", "prompt": "A turtle on the way 3", "prompt_extend": true, "safety_filter": true}', true, 7500000, NULL, NULL, NULL, '9420f6c816080dd03b7947cf3d946728', '2026-11-22 10:36:15.474+00', NULL, '2026-11-22 10:36:15.474+00');

INSERT INTO public.users VALUES
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'ada@example.com', 'Ada', NULL, '2026-11-22 10:36:08.115+00'),
	('01a202d3-dad1-7d8d-9be5-1d7fa32ee7b5', 'bob@example.com', NULL, NULL, '2026-11-22 10:36:08.273+00');

INSERT INTO public.vendor_attempts VALUES
	('01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', 1, 'alibaba', 'simulator', '\xf863efa24a6ea85ae25d1a99804bdd9c9d91e32a68f109e32532530c5faf0eca', 'submitted', '{"plan": {"kind": "images", "seed": 223045111, "count": 1, "width": 1664, "height": 928, "prompt": "A turtle", "seconds": 0, "hasSound": false, "framesPerSecond": 1}, "items": 1, "model": "text-to-image-max", "ending": "done", "taskId": "01a202d3-dbb9-7a1c-b1c4-fda30939c7d7", "delayMillis": 3000, "submittedAtMillis": 1795343768538}', NULL, '2026-11-22 10:36:08.534+00', '2026-11-22 10:36:08.538+00'),
	('01a202d3-dc56-7825-a0b2-bdc724ee4115', 1, 'alibaba', 'simulator', '\xce81fd2fdedd73ebfb0b2e6238914e5eba60c304648b6e82ab2a625233283aca', 'submitted', '{"plan": {"kind": "images", "seed": 2059063056, "count": 1, "width": 1664, "height": 928, "prompt": "A cancelled turtle", "seconds": 0, "hasSound": false, "framesPerSecond": 1}, "items": 1, "model": "text-to-image-max", "ending": "done", "taskId": "01a202d3-dc56-7825-a0b2-bdc724ee4115", "delayMillis": 3000, "submittedAtMillis": 1795343768749}', NULL, '2026-11-22 10:36:08.7+00', '2026-11-22 10:36:08.749+00'),
	('01a202d3-f6a4-7373-971b-744a0e2bcaba', 1, 'alibaba', 'simulator', '\xd3fbad4c3dc4cbad1ba690f92339647590a2b671b38e8c09b670d96cee1a16de', 'submitted', '{"plan": {"kind": "images", "seed": 1511921955, "count": 1, "width": 1664, "height": 928, "prompt": "A turtle on the way 0", "seconds": 0, "hasSound": false, "framesPerSecond": 1}, "items": 1, "model": "text-to-image-max", "ending": "done", "taskId": "01a202d3-f6a4-7373-971b-744a0e2bcaba", "delayMillis": 3000, "submittedAtMillis": 1795343775423}', NULL, '2026-11-22 10:36:15.42+00', '2026-11-22 10:36:15.423+00'),
	('01a202d3-f6c2-746c-8a13-9d9614b9f80c', 1, 'alibaba', 'simulator', '\x1e62f0317e6699fe1e95810c40d0e4b53b5e94c0c3f7eb67baf86a358271bafa', 'submitted', '{"plan": {"kind": "images", "seed": 1022371104, "count": 1, "width": 1664, "height": 928, "prompt": "A turtle on the way 1", "seconds": 0, "hasSound": false, "framesPerSecond": 1}, "items": 1, "model": "text-to-image-max", "ending": "done", "taskId": "01a202d3-f6c2-746c-8a13-9d9614b9f80c", "delayMillis": 3000, "submittedAtMillis": 1795343775460}', NULL, '2026-11-22 10:36:15.45+00', '2026-11-22 10:36:15.46+00'),
	('01a202d3-f6de-772d-a355-56688555c584', 1, 'alibaba', 'simulator', '\x53842716198843f52269d9be50f4f0899adf755ce1cba436f75fc2c667699fb0', 'submitted', '{"plan": {"kind": "images", "seed": 1171863469, "count": 1, "width": 1664, "height": 928, "prompt": "A turtle on the way 2", "seconds": 0, "hasSound": false, "framesPerSecond": 1}, "items": 1, "model": "text-to-image-max", "ending": "done", "taskId": "01a202d3-f6de-772d-a355-56688555c584", "delayMillis": 3000, "submittedAtMillis": 1795343775497}', NULL, '2026-11-22 10:36:15.491+00', '2026-11-22 10:36:15.497+00');

INSERT INTO public.vendor_callbacks VALUES
	('\x2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881', '2026-11-22 10:41:00+00');

INSERT INTO public.vendor_faults VALUES
	('openai:b', '2026-11-22 10:46:00+00');

INSERT INTO public.vendor_turns VALUES
	('dashscope:a/polls', '2026-11-22 10:36:19+00');

INSERT INTO public.wallet_audit_rounds VALUES
	(true, '2026-11-22 10:36:07.896+00', 0);

INSERT INTO public.wallet_audits VALUES
	('01a202d3-dad1-7d8d-9be5-1d7fa32ee7b5', 0, 0, 0, true, false, '2026-11-22 10:36:17+00'),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 75, 994472910, 30159840, true, false, '2026-11-22 10:36:17+00');

INSERT INTO public.wallet_entries VALUES
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 1, 'top_up', 1003000000, 1003000000, 0, 'top_up:01a202d3-da33-733e-b7e4-8cbd2c3914f7:6a2e228f-4a4b-4bb1-b265-85f56748e491', NULL, 'first', 'a3cd71e42c884fd47814bd4ee03c8b7e', '2026-11-22 10:36:08.309+00', 'NORMAL', 1000000000),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 2, 'adjustment', -1000000, 1002000000, 0, 'adjustment:01a202d3-da33-733e-b7e4-8cbd2c3914f7:99bfa537-b4c0-4589-ba84-a8ce62e0d597', NULL, 'too much', '1e1c727c10a9f190d9f1885b1369177a', '2026-11-22 10:36:08.357+00', 'NORMAL', 1000000000),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 3, 'hold', 7500000, 1002000000, 7500000, 'hold:01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', NULL, '96f18c120a813d2bd6bb67dbbf6caa5e', '2026-11-22 10:36:08.505+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 4, 'hold', 7500000, 1002000000, 15000000, 'hold:01a202d3-dc56-7825-a0b2-bdc724ee4115', '01a202d3-dc56-7825-a0b2-bdc724ee4115', NULL, '84c1b7b27dcba1d8017c240ebc148506', '2026-11-22 10:36:08.662+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 5, 'release', 7500000, 1002000000, 7500000, 'release:01a202d3-dc56-7825-a0b2-bdc724ee4115', '01a202d3-dc56-7825-a0b2-bdc724ee4115', NULL, '84c1b7b27dcba1d8017c240ebc148506', '2026-11-22 10:36:08.808+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 6, 'capture', 7500000, 994500000, 0, 'capture:01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', '01a202d3-dbb9-7a1c-b1c4-fda30939c7d7', NULL, '96f18c120a813d2bd6bb67dbbf6caa5e', '2026-11-22 10:36:11.749+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 7, 'hold', 2490, 994500000, 2490, 'hold:01a202d3-f686-7b8f-9618-8d927882214b', '01a202d3-f686-7b8f-9618-8d927882214b', NULL, 'b7283a7db3977013ecb49587239c3e6a', '2026-11-22 10:36:15.368+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 8, 'capture', 1290, 994498710, 1200, 'capture:01a202d3-f686-7b8f-9618-8d927882214b', '01a202d3-f686-7b8f-9618-8d927882214b', NULL, 'b7283a7db3977013ecb49587239c3e6a', '2026-11-22 10:36:15.389+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 9, 'release', 1200, 994498710, 0, 'release:01a202d3-f686-7b8f-9618-8d927882214b', '01a202d3-f686-7b8f-9618-8d927882214b', NULL, 'b7283a7db3977013ecb49587239c3e6a', '2026-11-22 10:36:15.389+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 10, 'hold', 7500000, 994498710, 7500000, 'hold:01a202d3-f6a4-7373-971b-744a0e2bcaba', '01a202d3-f6a4-7373-971b-744a0e2bcaba', NULL, 'ad8f034a18f15e34bbe0efb6ac32cdea', '2026-11-22 10:36:15.396+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 11, 'hold', 7500000, 994498710, 15000000, 'hold:01a202d3-f6c2-746c-8a13-9d9614b9f80c', '01a202d3-f6c2-746c-8a13-9d9614b9f80c', NULL, 'fbad89cca76d16491f7b8cd132f199ab', '2026-11-22 10:36:15.426+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 12, 'hold', 7500000, 994498710, 22500000, 'hold:01a202d3-f6de-772d-a355-56688555c584', '01a202d3-f6de-772d-a355-56688555c584', NULL, 'dd497f4ea68177cca517bdb5fff395ef', '2026-11-22 10:36:15.454+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 13, 'hold', 7500000, 994498710, 30000000, 'hold:01a202d3-f6f2-7898-8016-677ec953e6c8', '01a202d3-f6f2-7898-8016-677ec953e6c8', NULL, '9420f6c816080dd03b7947cf3d946728', '2026-11-22 10:36:15.474+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 14, 'hold', 2490, 994498710, 30002490, 'hold:01a202d3-fbb9-7370-a26e-49ed0f2d373b', '01a202d3-fbb9-7370-a26e-49ed0f2d373b', NULL, '2d0c866fbdd3f02807f8a6c1d68d77ad', '2026-11-22 10:36:16.703+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 15, 'hold', 2490, 994498710, 30004980, 'hold:01a202d3-fbbf-7dfe-a300-7ddccda11bf4', '01a202d3-fbbf-7dfe-a300-7ddccda11bf4', NULL, 'b4b2a41089badf6ce8a5ff7943f3ff14', '2026-11-22 10:36:16.703+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 16, 'capture', 1290, 994497420, 30003690, 'capture:01a202d3-fbb9-7370-a26e-49ed0f2d373b', '01a202d3-fbb9-7370-a26e-49ed0f2d373b', NULL, '2d0c866fbdd3f02807f8a6c1d68d77ad', '2026-11-22 10:36:16.708+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 17, 'release', 1200, 994497420, 30002490, 'release:01a202d3-fbb9-7370-a26e-49ed0f2d373b', '01a202d3-fbb9-7370-a26e-49ed0f2d373b', NULL, '2d0c866fbdd3f02807f8a6c1d68d77ad', '2026-11-22 10:36:16.708+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 18, 'capture', 1290, 994496130, 30001200, 'capture:01a202d3-fbbf-7dfe-a300-7ddccda11bf4', '01a202d3-fbbf-7dfe-a300-7ddccda11bf4', NULL, 'b4b2a41089badf6ce8a5ff7943f3ff14', '2026-11-22 10:36:16.708+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 19, 'release', 1200, 994496130, 30000000, 'release:01a202d3-fbbf-7dfe-a300-7ddccda11bf4', '01a202d3-fbbf-7dfe-a300-7ddccda11bf4', NULL, 'b4b2a41089badf6ce8a5ff7943f3ff14', '2026-11-22 10:36:16.708+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 20, 'hold', 2490, 994496130, 30002490, 'hold:01a202d3-fbc2-7c0a-9230-446b89325f09', '01a202d3-fbc2-7c0a-9230-446b89325f09', NULL, 'c36ab92a8968397d4d482da5a59094e0', '2026-11-22 10:36:16.708+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 21, 'hold', 2490, 994496130, 30004980, 'hold:01a202d3-fbc4-7e43-8039-c11a0224d887', '01a202d3-fbc4-7e43-8039-c11a0224d887', NULL, '495e87c29688593a428f858ba0b7b46f', '2026-11-22 10:36:16.708+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 22, 'capture', 1290, 994494840, 30003690, 'capture:01a202d3-fbc2-7c0a-9230-446b89325f09', '01a202d3-fbc2-7c0a-9230-446b89325f09', NULL, 'c36ab92a8968397d4d482da5a59094e0', '2026-11-22 10:36:16.725+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 23, 'release', 1200, 994494840, 30002490, 'release:01a202d3-fbc2-7c0a-9230-446b89325f09', '01a202d3-fbc2-7c0a-9230-446b89325f09', NULL, 'c36ab92a8968397d4d482da5a59094e0', '2026-11-22 10:36:16.725+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 24, 'capture', 1290, 994493550, 30001200, 'capture:01a202d3-fbc4-7e43-8039-c11a0224d887', '01a202d3-fbc4-7e43-8039-c11a0224d887', NULL, '495e87c29688593a428f858ba0b7b46f', '2026-11-22 10:36:16.725+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 25, 'release', 1200, 994493550, 30000000, 'release:01a202d3-fbc4-7e43-8039-c11a0224d887', '01a202d3-fbc4-7e43-8039-c11a0224d887', NULL, '495e87c29688593a428f858ba0b7b46f', '2026-11-22 10:36:16.725+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 26, 'hold', 2490, 994493550, 30002490, 'hold:01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', '01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', NULL, 'e29278718f508c13167c855991b12144', '2026-11-22 10:36:16.735+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 27, 'hold', 2490, 994493550, 30004980, 'hold:01a202d3-fbde-7635-96f4-0c02b28d0d73', '01a202d3-fbde-7635-96f4-0c02b28d0d73', NULL, '304dc77759c93db879440e7b0239a18d', '2026-11-22 10:36:16.735+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 28, 'capture', 1290, 994492260, 30003690, 'capture:01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', '01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', NULL, 'e29278718f508c13167c855991b12144', '2026-11-22 10:36:16.74+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 29, 'release', 1200, 994492260, 30002490, 'release:01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', '01a202d3-fbde-71b4-ad31-f73e4f0ec0d2', NULL, 'e29278718f508c13167c855991b12144', '2026-11-22 10:36:16.74+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 30, 'capture', 1290, 994490970, 30001200, 'capture:01a202d3-fbde-7635-96f4-0c02b28d0d73', '01a202d3-fbde-7635-96f4-0c02b28d0d73', NULL, '304dc77759c93db879440e7b0239a18d', '2026-11-22 10:36:16.74+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 31, 'release', 1200, 994490970, 30000000, 'release:01a202d3-fbde-7635-96f4-0c02b28d0d73', '01a202d3-fbde-7635-96f4-0c02b28d0d73', NULL, '304dc77759c93db879440e7b0239a18d', '2026-11-22 10:36:16.74+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 32, 'hold', 2490, 994490970, 30002490, 'hold:01a202d3-fbe7-7e4c-9450-53a058b3c4cc', '01a202d3-fbe7-7e4c-9450-53a058b3c4cc', NULL, 'cf8f8cdfd0c6f765ec28ef328a7d615f', '2026-11-22 10:36:16.744+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 33, 'capture', 1290, 994489680, 30001200, 'capture:01a202d3-fbe7-7e4c-9450-53a058b3c4cc', '01a202d3-fbe7-7e4c-9450-53a058b3c4cc', NULL, 'cf8f8cdfd0c6f765ec28ef328a7d615f', '2026-11-22 10:36:16.75+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 34, 'release', 1200, 994489680, 30000000, 'release:01a202d3-fbe7-7e4c-9450-53a058b3c4cc', '01a202d3-fbe7-7e4c-9450-53a058b3c4cc', NULL, 'cf8f8cdfd0c6f765ec28ef328a7d615f', '2026-11-22 10:36:16.75+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 35, 'hold', 2490, 994489680, 30002490, 'hold:01a202d3-fbed-7aac-a619-02a37b7d3003', '01a202d3-fbed-7aac-a619-02a37b7d3003', NULL, '3d5110993cabd1e392d28d09f4bef3d4', '2026-11-22 10:36:16.75+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 36, 'capture', 1290, 994488390, 30001200, 'capture:01a202d3-fbed-7aac-a619-02a37b7d3003', '01a202d3-fbed-7aac-a619-02a37b7d3003', NULL, '3d5110993cabd1e392d28d09f4bef3d4', '2026-11-22 10:36:16.753+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 37, 'release', 1200, 994488390, 30000000, 'release:01a202d3-fbed-7aac-a619-02a37b7d3003', '01a202d3-fbed-7aac-a619-02a37b7d3003', NULL, '3d5110993cabd1e392d28d09f4bef3d4', '2026-11-22 10:36:16.753+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 38, 'hold', 2490, 994488390, 30002490, 'hold:01a202d3-fbf8-768a-ad64-eebbbca5dbca', '01a202d3-fbf8-768a-ad64-eebbbca5dbca', NULL, '64234455e6aaeba44d4402a02b0937e1', '2026-11-22 10:36:16.76+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 39, 'capture', 1290, 994487100, 30001200, 'capture:01a202d3-fbf8-768a-ad64-eebbbca5dbca', '01a202d3-fbf8-768a-ad64-eebbbca5dbca', NULL, '64234455e6aaeba44d4402a02b0937e1', '2026-11-22 10:36:16.764+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 40, 'release', 1200, 994487100, 30000000, 'release:01a202d3-fbf8-768a-ad64-eebbbca5dbca', '01a202d3-fbf8-768a-ad64-eebbbca5dbca', NULL, '64234455e6aaeba44d4402a02b0937e1', '2026-11-22 10:36:16.764+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 41, 'hold', 2490, 994487100, 30002490, 'hold:01a202d3-fbfa-7ceb-8391-72dab6eaac41', '01a202d3-fbfa-7ceb-8391-72dab6eaac41', NULL, 'b9646c32dd1bdbe097a1ad6b25f250c5', '2026-11-22 10:36:16.764+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 42, 'capture', 1290, 994485810, 30001200, 'capture:01a202d3-fbfa-7ceb-8391-72dab6eaac41', '01a202d3-fbfa-7ceb-8391-72dab6eaac41', NULL, 'b9646c32dd1bdbe097a1ad6b25f250c5', '2026-11-22 10:36:16.769+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 43, 'release', 1200, 994485810, 30000000, 'release:01a202d3-fbfa-7ceb-8391-72dab6eaac41', '01a202d3-fbfa-7ceb-8391-72dab6eaac41', NULL, 'b9646c32dd1bdbe097a1ad6b25f250c5', '2026-11-22 10:36:16.769+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 44, 'hold', 2490, 994485810, 30002490, 'hold:01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', '01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', NULL, '2a29de75354123f8927ad7c941675ab4', '2026-11-22 10:36:16.769+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 45, 'capture', 1290, 994484520, 30001200, 'capture:01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', '01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', NULL, '2a29de75354123f8927ad7c941675ab4', '2026-11-22 10:36:16.775+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 46, 'release', 1200, 994484520, 30000000, 'release:01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', '01a202d3-fbfe-78e3-bdee-6cb03f59c0d8', NULL, '2a29de75354123f8927ad7c941675ab4', '2026-11-22 10:36:16.775+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 47, 'hold', 2490, 994484520, 30002490, 'hold:01a202d3-fc05-745a-885e-5d58beca87a9', '01a202d3-fc05-745a-885e-5d58beca87a9', NULL, '398ae1fdf31a8c1baba1fae2ecdb70ad', '2026-11-22 10:36:16.775+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 48, 'capture', 1290, 994483230, 30001200, 'capture:01a202d3-fc05-745a-885e-5d58beca87a9', '01a202d3-fc05-745a-885e-5d58beca87a9', NULL, '398ae1fdf31a8c1baba1fae2ecdb70ad', '2026-11-22 10:36:16.78+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 49, 'release', 1200, 994483230, 30000000, 'release:01a202d3-fc05-745a-885e-5d58beca87a9', '01a202d3-fc05-745a-885e-5d58beca87a9', NULL, '398ae1fdf31a8c1baba1fae2ecdb70ad', '2026-11-22 10:36:16.78+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 50, 'hold', 2490, 994483230, 30002490, 'hold:01a202d3-fc14-7783-8eed-b8ff513f3ebc', '01a202d3-fc14-7783-8eed-b8ff513f3ebc', NULL, 'be2ac756bb55c195f7f7d5cc77aa6030', '2026-11-22 10:36:16.792+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 51, 'hold', 2490, 994483230, 30004980, 'hold:01a202d3-fc15-7189-8845-124e8aa64197', '01a202d3-fc15-7189-8845-124e8aa64197', NULL, '25343c03a7be99b2d50d955639e397c2', '2026-11-22 10:36:16.792+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 52, 'hold', 2490, 994483230, 30007470, 'hold:01a202d3-fc15-7ec8-8626-aafd55d95baf', '01a202d3-fc15-7ec8-8626-aafd55d95baf', NULL, '462a131fbbf758441963f61c1790ff3d', '2026-11-22 10:36:16.792+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 53, 'hold', 2490, 994483230, 30009960, 'hold:01a202d3-fc16-74a8-b667-4c81030253ae', '01a202d3-fc16-74a8-b667-4c81030253ae', NULL, '8ea1bde1774338db865085abb3091a32', '2026-11-22 10:36:16.792+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 55, 'capture', 1290, 994481940, 30018630, 'capture:01a202d3-fc14-7783-8eed-b8ff513f3ebc', '01a202d3-fc14-7783-8eed-b8ff513f3ebc', NULL, 'be2ac756bb55c195f7f7d5cc77aa6030', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 56, 'release', 1200, 994481940, 30017430, 'release:01a202d3-fc14-7783-8eed-b8ff513f3ebc', '01a202d3-fc14-7783-8eed-b8ff513f3ebc', NULL, 'be2ac756bb55c195f7f7d5cc77aa6030', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 57, 'capture', 1290, 994480650, 30016140, 'capture:01a202d3-fc15-7189-8845-124e8aa64197', '01a202d3-fc15-7189-8845-124e8aa64197', NULL, '25343c03a7be99b2d50d955639e397c2', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 58, 'release', 1200, 994480650, 30014940, 'release:01a202d3-fc15-7189-8845-124e8aa64197', '01a202d3-fc15-7189-8845-124e8aa64197', NULL, '25343c03a7be99b2d50d955639e397c2', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 59, 'capture', 1290, 994479360, 30013650, 'capture:01a202d3-fc15-7ec8-8626-aafd55d95baf', '01a202d3-fc15-7ec8-8626-aafd55d95baf', NULL, '462a131fbbf758441963f61c1790ff3d', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 60, 'release', 1200, 994479360, 30012450, 'release:01a202d3-fc15-7ec8-8626-aafd55d95baf', '01a202d3-fc15-7ec8-8626-aafd55d95baf', NULL, '462a131fbbf758441963f61c1790ff3d', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 61, 'capture', 1290, 994478070, 30011160, 'capture:01a202d3-fc16-74a8-b667-4c81030253ae', '01a202d3-fc16-74a8-b667-4c81030253ae', NULL, '8ea1bde1774338db865085abb3091a32', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 62, 'release', 1200, 994478070, 30009960, 'release:01a202d3-fc16-74a8-b667-4c81030253ae', '01a202d3-fc16-74a8-b667-4c81030253ae', NULL, '8ea1bde1774338db865085abb3091a32', '2026-11-22 10:36:16.797+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 63, 'hold', 2490, 994478070, 30012450, 'hold:01a202d3-fc28-7ad1-8596-38eadb75dd3e', '01a202d3-fc28-7ad1-8596-38eadb75dd3e', NULL, '80bd301318c51ac8011fa9e383e928d5', '2026-11-22 10:36:16.82+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 64, 'hold', 2490, 994478070, 30014940, 'hold:01a202d3-fc29-7102-ae2f-6c07d080719b', '01a202d3-fc29-7102-ae2f-6c07d080719b', NULL, 'a590e2962bafad0dd9a287a2e7852d79', '2026-11-22 10:36:16.82+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 65, 'hold', 2490, 994478070, 30017430, 'hold:01a202d3-fc2b-786d-ba61-7fa9a624eaa1', '01a202d3-fc2b-786d-ba61-7fa9a624eaa1', NULL, '70754dae81daaaa8eea239fba9078961', '2026-11-22 10:36:16.82+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 69, 'capture', 1290, 994475490, 30046020, 'capture:01a202d3-fc28-7ad1-8596-38eadb75dd3e', '01a202d3-fc28-7ad1-8596-38eadb75dd3e', NULL, '80bd301318c51ac8011fa9e383e928d5', '2026-11-22 10:36:16.826+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 70, 'release', 1200, 994475490, 30044820, 'release:01a202d3-fc28-7ad1-8596-38eadb75dd3e', '01a202d3-fc28-7ad1-8596-38eadb75dd3e', NULL, '80bd301318c51ac8011fa9e383e928d5', '2026-11-22 10:36:16.826+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 71, 'capture', 1290, 994474200, 30043530, 'capture:01a202d3-fc29-7102-ae2f-6c07d080719b', '01a202d3-fc29-7102-ae2f-6c07d080719b', NULL, 'a590e2962bafad0dd9a287a2e7852d79', '2026-11-22 10:36:16.826+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 72, 'release', 1200, 994474200, 30042330, 'release:01a202d3-fc29-7102-ae2f-6c07d080719b', '01a202d3-fc29-7102-ae2f-6c07d080719b', NULL, 'a590e2962bafad0dd9a287a2e7852d79', '2026-11-22 10:36:16.826+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 73, 'capture', 1290, 994472910, 30041040, 'capture:01a202d3-fc2b-786d-ba61-7fa9a624eaa1', '01a202d3-fc2b-786d-ba61-7fa9a624eaa1', NULL, '70754dae81daaaa8eea239fba9078961', '2026-11-22 10:36:16.826+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 74, 'release', 1200, 994472910, 30039840, 'release:01a202d3-fc2b-786d-ba61-7fa9a624eaa1', '01a202d3-fc2b-786d-ba61-7fa9a624eaa1', NULL, '70754dae81daaaa8eea239fba9078961', '2026-11-22 10:36:16.826+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 54, 'hold', 9960, 994483230, 30019920, 'hold:01a202d3-fc22-7add-b718-1b0f341f09a3', '01a202d3-fc22-7add-b718-1b0f341f09a3', NULL, NULL, '2026-11-22 10:36:16.802+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 66, 'release', 8670, 994478070, 30008760, 'release:01a202d3-fc22-7add-b718-1b0f341f09a3', '01a202d3-fc22-7add-b718-1b0f341f09a3', NULL, NULL, '2026-11-22 10:36:16.828+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 67, 'capture', 1290, 994476780, 30007470, 'capture:01a202d3-fc31-7899-b1ee-73f60606674f', '01a202d3-fc31-7899-b1ee-73f60606674f', '01a202d3-fc22-7add-b718-1b0f341f09a3', 'ccb3e21ad078d6178f882bde2e5aab8b', '2026-11-22 10:36:16.828+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 68, 'hold', 39840, 994476780, 30047310, 'hold:01a202d3-fc3c-7559-9007-137ce8d7fad5', '01a202d3-fc3c-7559-9007-137ce8d7fad5', NULL, NULL, '2026-11-22 10:36:16.828+00', NULL, NULL),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 75, 'hold', 120000, 994472910, 30159840, 'hold:01a202d3-fd00-7000-8000-000000000001', '01a202d3-fd00-7000-8000-000000000001', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '2026-11-22 10:36:17+00', NULL, NULL);

INSERT INTO public.wallets VALUES
	('01a202d3-dad1-7d8d-9be5-1d7fa32ee7b5', 0, 0, 1000000000, 'NORMAL', NULL, true, 0),
	('01a202d3-da33-733e-b7e4-8cbd2c3914f7', 994472910, 30159840, 1000000000, 'ALERTED', '2026-11-22 10:36:11.749+00', false, 75);

INSERT INTO public.webhook_endpoints VALUES
	('whe_01a202d3db9279648ee8ea957f12dd6d', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'https://127.0.0.1:9/all', '{task.created,task.succeeded,task.failed,balance.low}', 'all', true, '\xf620ec0fd137493a67701325724724535778cb9ae22c192a601f5c086e56f16de3e624905f7275ef46ac16e515c839af93ae8cefcdd28c1d8dd23a30bc9eadf956a0f9af1a13b6e9f299aff4b6', 'whsec_...5q7k', NULL, NULL, '2026-11-22 10:36:08.466+00', '2026-11-22 10:36:08.466+00', NULL),
	('whe_01a202d3dba979f1ba620c1aad21d1d5', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'https://127.0.0.1:9/disabled', '{task.created}', 'disabled', false, '\x48c50f8481fa32c1c1a53f4a795ee7a0e5da120f6b39b378c183908d3662fb97c831ed337846f542569cdb712809ca1e769c5e382048e07ec8bf50f2c375ea8d7e2aae9bc6d92061f5c31cd896', 'whsec_...QfhA', NULL, NULL, '2026-11-22 10:36:08.489+00', '2026-11-22 10:36:08.589+00', NULL),
	('whe_01a202d3dc247ee7b68d69bf4f0edcf9', '01a202d3-da33-733e-b7e4-8cbd2c3914f7', 'https://127.0.0.1:9/deleted', '{task.created}', 'deleted', false, '\x0e8f1447c420ab10109198cb3f3a000324e9d12258349ca17069ebecf3ff267db270b042efefb741ebc0aa4943da400574e9ba6f48e503a674eafd0f7af088daf82fe2736ba1127b81c7f5b32a', 'whsec_...VoHQ', NULL, NULL, '2026-11-22 10:36:08.612+00', '2026-11-22 10:36:08.757+00', '2026-11-22 10:36:08.757+00');

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.calls
    ADD CONSTRAINT calls_pkey PRIMARY KEY (user_id, id, created_at);

ALTER TABLE ONLY public.calls_20261122
    ADD CONSTRAINT calls_20261122_pkey PRIMARY KEY (user_id, id, created_at);

ALTER TABLE ONLY public.calls_20261123
    ADD CONSTRAINT calls_20261123_pkey PRIMARY KEY (user_id, id, created_at);

ALTER TABLE ONLY public.calls_default
    ADD CONSTRAINT calls_default_pkey PRIMARY KEY (user_id, id, created_at);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.deliveries_20261122
    ADD CONSTRAINT deliveries_20261122_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.deliveries_20261123
    ADD CONSTRAINT deliveries_20261123_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.deliveries_default
    ADD CONSTRAINT deliveries_default_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, seq, started_at);

ALTER TABLE ONLY public.delivery_attempts_20261122
    ADD CONSTRAINT delivery_attempts_20261122_pkey PRIMARY KEY (delivery_id, seq, started_at);

ALTER TABLE ONLY public.delivery_attempts_20261123
    ADD CONSTRAINT delivery_attempts_20261123_pkey PRIMARY KEY (delivery_id, seq, started_at);

ALTER TABLE ONLY public.delivery_attempts_default
    ADD CONSTRAINT delivery_attempts_default_pkey PRIMARY KEY (delivery_id, seq, started_at);

ALTER TABLE ONLY public.delivery_queue
    ADD CONSTRAINT delivery_queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.events_20261122
    ADD CONSTRAINT events_20261122_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.events_20261123
    ADD CONSTRAINT events_20261123_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.events_default
    ADD CONSTRAINT events_default_pkey PRIMARY KEY (id, created_at);

ALTER TABLE ONLY public.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, key);

ALTER TABLE ONLY public.manage_answers
    ADD CONSTRAINT manage_answers_pkey PRIMARY KEY (caller, key);

ALTER TABLE ONLY public.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.request_buckets
    ADD CONSTRAINT request_buckets_pkey PRIMARY KEY (api_key_id);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.vendor_attempts
    ADD CONSTRAINT vendor_attempts_pkey PRIMARY KEY (task_id, n);

ALTER TABLE ONLY public.vendor_callbacks
    ADD CONSTRAINT vendor_callbacks_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.vendor_faults
    ADD CONSTRAINT vendor_faults_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.vendor_turns
    ADD CONSTRAINT vendor_turns_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.wallet_audit_rounds
    ADD CONSTRAINT wallet_audit_rounds_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.wallet_audits
    ADD CONSTRAINT wallet_audits_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.wallet_entries
    ADD CONSTRAINT wallet_entries_pkey PRIMARY KEY (user_id, seq);

ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);

CREATE INDEX api_keys_user ON public.api_keys USING btree (user_id, id DESC);

CREATE INDEX artifacts_expiry ON public.artifacts USING btree (expires_at);

CREATE INDEX artifacts_task ON public.artifacts USING btree (task_id);

CREATE INDEX deliveries_endpoint ON ONLY public.deliveries USING btree (endpoint_id, id DESC);

CREATE INDEX deliveries_20261122_endpoint_id_id_idx ON public.deliveries_20261122 USING btree (endpoint_id, id DESC);

CREATE INDEX deliveries_task ON ONLY public.deliveries USING btree (task_id) WHERE (task_id IS NOT NULL);

CREATE INDEX deliveries_20261122_task_id_idx ON public.deliveries_20261122 USING btree (task_id) WHERE (task_id IS NOT NULL);

CREATE INDEX deliveries_user ON ONLY public.deliveries USING btree (user_id, id DESC);

CREATE INDEX deliveries_20261122_user_id_id_idx ON public.deliveries_20261122 USING btree (user_id, id DESC);

CREATE INDEX deliveries_20261123_endpoint_id_id_idx ON public.deliveries_20261123 USING btree (endpoint_id, id DESC);

CREATE INDEX deliveries_20261123_task_id_idx ON public.deliveries_20261123 USING btree (task_id) WHERE (task_id IS NOT NULL);

CREATE INDEX deliveries_20261123_user_id_id_idx ON public.deliveries_20261123 USING btree (user_id, id DESC);

CREATE INDEX deliveries_default_endpoint_id_id_idx ON public.deliveries_default USING btree (endpoint_id, id DESC);

CREATE INDEX deliveries_default_task_id_idx ON public.deliveries_default USING btree (task_id) WHERE (task_id IS NOT NULL);

CREATE INDEX deliveries_default_user_id_id_idx ON public.deliveries_default USING btree (user_id, id DESC);

CREATE INDEX delivery_attempts_window ON ONLY public.delivery_attempts USING btree (endpoint_id, started_at);

CREATE INDEX delivery_attempts_20261122_endpoint_id_started_at_idx ON public.delivery_attempts_20261122 USING btree (endpoint_id, started_at);

CREATE INDEX delivery_attempts_20261123_endpoint_id_started_at_idx ON public.delivery_attempts_20261123 USING btree (endpoint_id, started_at);

CREATE INDEX delivery_attempts_default_endpoint_id_started_at_idx ON public.delivery_attempts_default USING btree (endpoint_id, started_at);

CREATE INDEX delivery_queue_claimed ON public.delivery_queue USING btree (endpoint_id) WHERE (owner IS NOT NULL);

CREATE INDEX delivery_queue_due ON public.delivery_queue USING btree (due_at) WHERE (owner IS NULL);

CREATE INDEX delivery_queue_endpoint ON public.delivery_queue USING btree (endpoint_id, due_at) WHERE (owner IS NULL);

CREATE UNIQUE INDEX holds_allowances ON public.holds USING btree (api_key_id, process_id) WHERE (kind = 'allowance'::text);

CREATE INDEX idempotency_keys_age ON public.idempotency_keys USING btree (created_at);

CREATE INDEX manage_answers_age ON public.manage_answers USING btree (created_at);

CREATE INDEX runs_api_key ON public.runs USING btree (api_key_id);

CREATE INDEX runs_called ON public.runs USING btree (owner) WHERE called;

CREATE INDEX runs_owner ON public.runs USING btree (owner);

CREATE INDEX runs_slot ON public.runs USING btree (slot, slot_held, task_id) WHERE (slot IS NOT NULL);

CREATE INDEX tasks_user ON public.tasks USING btree (user_id, id DESC);

CREATE UNIQUE INDEX users_email ON public.users USING btree (lower(email));

CREATE INDEX vendor_attempts_started ON public.vendor_attempts USING brin (started_at);

CREATE INDEX vendor_callbacks_expiry ON public.vendor_callbacks USING btree (expires_at);

CREATE INDEX wallet_audits_drifting ON public.wallet_audits USING btree (user_id) WHERE drifting;

CREATE UNIQUE INDEX wallet_entries_operation_id ON public.wallet_entries USING btree (operation_id) WHERE (subject_id IS NULL);

CREATE UNIQUE INDEX wallet_entries_subject ON public.wallet_entries USING btree (subject_id, kind) WHERE (subject_id IS NOT NULL);

CREATE INDEX webhook_endpoints_user ON public.webhook_endpoints USING btree (user_id) WHERE (deleted_at IS NULL);

ALTER INDEX public.calls_pkey ATTACH PARTITION public.calls_20261122_pkey;

ALTER INDEX public.calls_pkey ATTACH PARTITION public.calls_20261123_pkey;

ALTER INDEX public.calls_pkey ATTACH PARTITION public.calls_default_pkey;

ALTER INDEX public.deliveries_endpoint ATTACH PARTITION public.deliveries_20261122_endpoint_id_id_idx;

ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_20261122_pkey;

ALTER INDEX public.deliveries_task ATTACH PARTITION public.deliveries_20261122_task_id_idx;

ALTER INDEX public.deliveries_user ATTACH PARTITION public.deliveries_20261122_user_id_id_idx;

ALTER INDEX public.deliveries_endpoint ATTACH PARTITION public.deliveries_20261123_endpoint_id_id_idx;

ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_20261123_pkey;

ALTER INDEX public.deliveries_task ATTACH PARTITION public.deliveries_20261123_task_id_idx;

ALTER INDEX public.deliveries_user ATTACH PARTITION public.deliveries_20261123_user_id_id_idx;

ALTER INDEX public.deliveries_endpoint ATTACH PARTITION public.deliveries_default_endpoint_id_id_idx;

ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_default_pkey;

ALTER INDEX public.deliveries_task ATTACH PARTITION public.deliveries_default_task_id_idx;

ALTER INDEX public.deliveries_user ATTACH PARTITION public.deliveries_default_user_id_id_idx;

ALTER INDEX public.delivery_attempts_window ATTACH PARTITION public.delivery_attempts_20261122_endpoint_id_started_at_idx;

ALTER INDEX public.delivery_attempts_pkey ATTACH PARTITION public.delivery_attempts_20261122_pkey;

ALTER INDEX public.delivery_attempts_window ATTACH PARTITION public.delivery_attempts_20261123_endpoint_id_started_at_idx;

ALTER INDEX public.delivery_attempts_pkey ATTACH PARTITION public.delivery_attempts_20261123_pkey;

ALTER INDEX public.delivery_attempts_window ATTACH PARTITION public.delivery_attempts_default_endpoint_id_started_at_idx;

ALTER INDEX public.delivery_attempts_pkey ATTACH PARTITION public.delivery_attempts_default_pkey;

ALTER INDEX public.events_pkey ATTACH PARTITION public.events_20261122_pkey;

ALTER INDEX public.events_pkey ATTACH PARTITION public.events_20261123_pkey;

ALTER INDEX public.events_pkey ATTACH PARTITION public.events_default_pkey;

CREATE TRIGGER holds_have_wallets AFTER INSERT ON public.holds REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.rows_have_wallets();

CREATE TRIGGER holds_keep_wallet BEFORE UPDATE OF user_id ON public.holds FOR EACH ROW EXECUTE FUNCTION public.forbid_other_wallet();

CREATE TRIGGER wallet_entries_have_wallets AFTER INSERT ON public.wallet_entries REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.rows_have_wallets();

CREATE TRIGGER wallet_entries_immutable BEFORE DELETE OR UPDATE ON public.wallet_entries FOR EACH ROW EXECUTE FUNCTION public.forbid_change();

CREATE TRIGGER wallet_entries_kept BEFORE TRUNCATE ON public.wallet_entries FOR EACH STATEMENT EXECUTE FUNCTION public.forbid_change();

CREATE TRIGGER wallets_keep_user BEFORE UPDATE OF user_id ON public.wallets FOR EACH ROW EXECUTE FUNCTION public.forbid_other_wallet();

CREATE TRIGGER wallets_kept BEFORE DELETE OR TRUNCATE ON public.wallets FOR EACH STATEMENT EXECUTE FUNCTION public.forbid_change();

CREATE CONSTRAINT TRIGGER wallets_match_ledger AFTER INSERT OR UPDATE OF settled, held, entry_count ON public.wallets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.wallet_matches_ledger();

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
