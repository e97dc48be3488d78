-- Metered passthrough calls: holds, settlement and receipts, many in one transaction
-- (ADR 0072, ADR 0100, ADR 0116, ADR 0120).
--
-- Every function locks its wallets in order of id, so that batches cannot deadlock. The statement after the
-- lock sees what other transactions have committed. One plan serves all batches, however large the first ones
-- were (`plan_cache_mode`). No function captures more than was held.

-- Settles the calls that have ended, then holds for those that start. Both are typed arrays, with one place for
-- each call. Whoever deletes a hold settles it: an ended call without a hold is passed over. Of the calls that
-- start on one wallet, the cheapest are held first, so that as many as possible can be paid. `p_receipts`: what
-- the receipt of a starting call will say (`holds.call`). Returns refusals and balance alerts. Raises GW428
-- when an alert is due and the caller has no transaction to publish it in (`p_alerts` is false).
create or replace function calls_write(
  p_ended uuid[], p_ended_users uuid[], p_captured bigint[], p_outcomes text[], p_statuses integer[],
  p_accounts text[], p_usages text[],
  p_started uuid[], p_started_users uuid[], p_keys text[], p_amounts bigint[], p_receipts text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof calls_write_result language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  results calls_write_result[];
  crossed threshold_crossing[];
  touch boolean;
begin
  perform from wallets w where w.user_id = any (p_ended_users || p_started_users)
    order by w.user_id for no key update;
  with wallet as materialized (
    select w.user_id, w.settled, w.held, w.entry_count, w.trigger_threshold, w.state
    from wallets w where w.user_id = any (p_ended_users || p_started_users)
  ), deleted as (
    delete from holds h where h.id = any (p_ended) and h.user_id = any (p_ended_users) and h.kind = 'call'
    returning h.*
  ), ended as materialized (
    select g.id, g.user_id, g.amount, g.created_at, least(x.captured, g.amount) as captured, x.outcome, x.status,
      x.account, x.usage, n.*
    from deleted g
    join unnest(p_ended, p_captured, p_outcomes, p_statuses, p_accounts, p_usages)
      as x(id, captured, outcome, status, account, usage) on x.id = g.id
    cross join lateral json_to_record(g.call)
      as n(key text, vendor text, model text, route text, sandbox boolean, trace text, catalog integer)
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at, catalog_id)
    select id, user_id, key, vendor, model, route, account, outcome, status, amount, captured,
      usage::jsonb, sandbox, trace, created_at, p_now, catalog
    from ended
  ), freed as (
    select user_id, sum(captured)::bigint as captured, sum(amount)::bigint as amount from ended group by user_id
  ), started as (
    select x.id, x.user_id, x.amount, x.receipt, k.id is not null as alive,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as touch,
      sum(x.amount) filter (where k.id is not null)
        over (partition by x.user_id order by x.amount, x.id rows unbounded preceding) as total
    from unnest(p_started, p_started_users, p_keys, p_amounts, p_receipts) as x(id, user_id, key, amount, receipt)
    left join (
      select k.id, k.last_used_at from api_keys k
      where k.id = any (p_keys) and k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
        and 'inference' = any (k.scopes)
    ) k on k.id = x.key
  ), decided as materialized (
    select s.id, s.user_id, s.amount, s.receipt, s.touch, case
        when not s.alive then 'key'
        when w.user_id is null or s.total > w.settled - coalesce(f.captured, 0) - w.held + coalesce(f.amount, 0)
          then 'balance'
      end as refused
    from started s left join wallet w on w.user_id = s.user_id left join freed f on f.user_id = s.user_id
  ), opened as (
    insert into holds (id, user_id, kind, amount, created_at, process_id, call)
    select id, user_id, 'call', amount, p_now, p_process, receipt::json from decided where refused is null
  ), entries as (
    select user_id, id, 1 as step, 'capture' as kind, captured as amount,
      -captured as settled_by, -captured as held_by, amount - captured as rest, trace
    from ended where captured > 0
    union all
    select user_id, id, 2, 'release', amount - captured, 0, captured - amount, 0, trace
    from ended where captured < amount or amount = 0
    union all
    select user_id, id, 3, 'hold', amount, 0, amount, 0, receipt::json ->> 'trace' from decided where refused is null
  ), numbered as (
    select l.user_id, l.id, l.kind, l.amount, l.rest, l.trace, w.trigger_threshold, w.state,
      w.entry_count + row_number() over ledger as seq,
      (w.settled + sum(l.settled_by) over ledger)::bigint as settled_after,
      (w.held + sum(l.held_by) over ledger)::bigint as held_after
    from entries l join wallet w on w.user_id = l.user_id
    -- The capture and the release of a call are next to each other; the holds are last.
    window ledger as (partition by l.user_id order by l.step = 3, l.id, l.step rows unbounded preceding)
  ), inserted as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select user_id, seq, kind, amount, settled_after, held_after, kind || ':' || id, id, trace, p_now from numbered
  ), updated as (
    update wallets u set settled = u.settled + s.settled_by, held = u.held + s.held_by,
      entry_count = u.entry_count + s.entries
    from (
      select user_id, count(*) as entries, sum(settled_by)::bigint as settled_by, sum(held_by)::bigint as held_by
      from entries group by user_id
    ) s
    where u.user_id = s.user_id
  )
  select
    array_agg((j.id, j.refused, null, null, null)::calls_write_result) filter (where j.refused is not null),
    bool_or(j.touch),
    -- The balance after the charge that crosses the threshold, and after the release that belongs to it.
    (select array_agg((n.user_id, n.settled_after - n.held_after + n.rest, n.trigger_threshold)::threshold_crossing
        order by n.seq)
      from numbered n where n.kind = 'capture' and n.settled_after < n.trigger_threshold and n.state = 'NORMAL')
  into results, touch, crossed from decided j;
  if touch then perform api_keys_touch(p_keys, p_now); end if;
  if crossed is not null then
    results := results || array(
      select (null, null, a.user_id, a.available, a.threshold)::calls_write_result
      from wallet_alerts_raise(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  if results is not null then
    return query select * from unnest(results);
  end if;
end $$;

-- Settles calls that were paid from the reservations of a process, and replaces each reservation with one of
-- another amount: p_needs, for the calls in progress, and p_extras, for those to come. A reservation of 0 is
-- closed. A reservation grows by at most a sixteenth of what is available, and not at all when its key may not
-- be used. What was reserved before and is still requested stays reserved, because calls may be paid from it.
--
-- The caller has counted, so that nothing is sorted or looked up here. For each key: p_captures and p_charged
-- are the number and the sum of its captures. For each call: p_places is the place of its key in p_keys,
-- p_numbers the number of its capture among those of its key (0: the call costs nothing), and p_totals the sum
-- of these captures up to it. p_started_ms is Unix time in milliseconds. p_usages: with the number of the call's
-- catalog as `catalog`.
--
-- Raises unique_violation when a call was settled before, GW409 when a reservation does not cover its calls,
-- and GW428 when an alert is due and the caller has no transaction to publish it in (`p_alerts` is false). The
-- caller then calls reservations_settle_again.
create or replace function reservations_settle(
  p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[], p_captures bigint[],
  p_charged bigint[],
  p_ended uuid[], p_places integer[], p_numbers bigint[], p_totals bigint[], p_started_ms bigint[], p_amounts bigint[],
  p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[],
  p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof reservations_settle_result language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  results reservations_settle_result[];
  covered boolean;
  known boolean;
  touch boolean;
  crossed threshold_crossing[];
begin
  perform from wallets w where w.user_id = any (p_users) order by w.user_id for no key update;
  select bool_and(coalesce(h.amount, 0) >= x.charged), bool_and(h.id is not null) into covered, known
  from unnest(p_keys, p_charged) as x(key, charged)
  left join holds h on h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = x.key;
  if not covered then
    raise exception 'calls without cover' using errcode = 'GW409';
  end if;
  -- A revocation waits for the first reservation of its key and then finds it, or it is committed before and is seen
  -- here.
  if not known then
    perform from api_keys k where k.id = any (p_keys) order by k.id for share of k;
  end if;
  with deleted as (
    delete from holds h where h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = any (p_keys)
    returning h.id, h.api_key_id as key, h.amount
  ), requested as (
    select x.*, g.id as old_hold, coalesce(g.amount, 0) - x.charged as rest, w.settled, w.held, w.entry_count,
      w.trigger_threshold, w.state,
      k.id is not null as alive, k.expires_at,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as touch,
      -- The rest of the old reservation, as far as it is requested, needs no new balance.
      least(x.needs + x.extra, coalesce(g.amount, 0) - x.charged) as kept
    from unnest(p_keys, p_users, p_holds, p_needs, p_extras, p_captures, p_charged) with ordinality
      as x(key, user_id, hold, needs, extra, captures, charged, place)
    join wallets w on w.user_id = x.user_id
    left join deleted g on g.key = x.key
    left join api_keys k on k.id = x.key and k.user_id = x.user_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > p_now) and 'inference' = any (k.scopes)
  ), limited as (
    select t.*, t.settled - t.held + sum(t.rest - t.kept) over per_wallet as available,
      count(*) over per_wallet as keys
    from requested t window per_wallet as (partition by t.user_id)
  ), sized as (
    select r.*, r.kept + case when r.alive and r.available > 0
      then least(r.needs + r.extra - r.kept, div(r.available, 16 * r.keys)) else 0 end::bigint as granted
    from limited r
  ), numbered as materialized (
    -- Of each wallet all releases come first, then the captures, then the holds.
    select s.*,
      s.entry_count + count(*) filter (where s.rest > 0) over up_to_key as release_seq,
      (s.held - sum(s.rest) over up_to_key)::bigint as held_after_release,
      (s.entry_count + count(*) filter (where s.rest > 0) over per_wallet + sum(s.captures) over up_to_key
        - s.captures)::bigint as seq_before,
      (s.settled - sum(s.charged) over up_to_key + s.charged)::bigint as settled_before,
      (s.held - sum(s.rest) over per_wallet - sum(s.charged) over up_to_key + s.charged)::bigint as held_before,
      (s.entry_count + count(*) filter (where s.rest > 0) over per_wallet + sum(s.captures) over per_wallet
        + count(*) filter (where s.granted > 0) over up_to_key)::bigint as hold_seq,
      (s.settled - sum(s.charged) over per_wallet)::bigint as settled_after,
      (s.held - sum(s.rest + s.charged) over per_wallet)::bigint as held_after_captures,
      (s.held - sum(s.rest + s.charged) over per_wallet + sum(s.granted) over up_to_key)::bigint as held_after,
      s.place = max(s.place) over per_wallet as is_last
    from sized s
    window per_wallet as (partition by s.user_id),
      up_to_key as (partition by s.user_id order by s.place rows unbounded preceding)
  ), reserved as (
    insert into holds (id, user_id, kind, amount, created_at, process_id, api_key_id)
    select hold, user_id, 'reservation', granted, p_now, p_process, key from numbered where granted > 0
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at, catalog_id)
    select c.id, p_users[c.place], p_keys[c.place], c.vendor, c.model, c.route, c.account, c.outcome, c.status,
      c.amount, c.captured, nullif(c.usage - 'catalog', '{}'), c.sandbox, c.trace,
      timestamptz 'epoch' + c.started_ms * interval '1 millisecond', p_now, (c.usage ->> 'catalog')::integer
    from (
      select unnest(p_ended) as id, unnest(p_places) as place, unnest(p_vendors) as vendor, unnest(p_models) as model,
        unnest(p_routes) as route, unnest(p_accounts) as account, unnest(p_outcomes) as outcome,
        unnest(p_statuses) as status, unnest(p_amounts) as amount, unnest(p_captured) as captured,
        unnest(p_usages)::jsonb as usage, unnest(p_sandboxes) as sandbox, unnest(p_traces) as trace,
        unnest(p_started_ms) as started_ms
    ) c
  ), inserted as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, note, trace_id, created_at)
    select user_id, release_seq, 'release', rest, settled, held_after_release,
      'release:' || old_hold, old_hold, null, null, p_now
    from numbered where rest > 0
    union all
    select p.user_id, p.seq_before + c.number, 'capture', c.captured,
      p.settled_before - c.total, p.held_before - c.total,
      'capture:' || c.id, c.id, p.old_hold::text, c.trace, p_now
    from (
      select unnest(p_ended) as id, unnest(p_places) as place, unnest(p_numbers) as number, unnest(p_totals) as total,
        unnest(p_captured) as captured, unnest(p_traces) as trace
    ) c join numbered p on p.place = c.place
    where c.number > 0
    union all
    select user_id, hold_seq, 'hold', granted, settled_after, held_after,
      'hold:' || hold, hold, null, null, p_now
    from numbered where granted > 0
  ), updated as (
    update wallets u set settled = p.settled_after, held = p.held_after, entry_count = p.hold_seq
    from numbered p where u.user_id = p.user_id and p.is_last
  )
  select
    array_agg((p.key, p.granted, p.available, p.alive, p.expires_at, null, null)::reservations_settle_result),
    bool_or(p.touch and p.alive),
    -- The balance after the charges and before the new holds.
    array_agg((p.user_id, p.settled_after - p.held_after_captures, p.trigger_threshold)::threshold_crossing
        order by p.user_id)
      filter (where p.charged > 0 and p.state = 'NORMAL' and p.settled_after < p.trigger_threshold)
  into results, touch, crossed from numbered p;
  if touch then perform api_keys_touch(p_keys, p_now); end if;
  if crossed is not null then
    results := results || array(
      select (null, null, a.available, null, null, a.user_id, a.threshold)::reservations_settle_result
      from wallet_alerts_raise(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  return query select * from unnest(results);
end $$;

-- The same for a batch that reservations_settle refused, in a transaction that publishes its alerts. A call
-- that was settled before is passed over. A call without cover (another process has closed the reservation,
-- because it took this one for dead) is lost: nothing is charged. Amounts of reservations are absolute, so that
-- a batch may be repeated, with more calls.
create or replace function reservations_settle_again(
  p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[], p_captures bigint[],
  p_charged bigint[],
  p_ended uuid[], p_places integer[], p_numbers bigint[], p_totals bigint[], p_started_ms bigint[], p_amounts bigint[],
  p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[],
  p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof reservations_settle_result language plpgsql as $$
begin
  perform from wallets w where w.user_id = any (p_users) order by w.user_id for no key update;
  with unsettled as (
    select c.*, sum(c.captured) over (partition by c.place order by c.n) <= coalesce(h.amount, 0) as covered
    from unnest(p_ended, p_places, p_started_ms, p_amounts, p_captured, p_outcomes, p_statuses, p_accounts, p_usages,
        p_vendors, p_models, p_routes, p_sandboxes, p_traces) with ordinality
      as c(id, place, started_ms, amount, captured, outcome, status, account, usage, vendor, model, route, sandbox,
        trace, n)
    left join holds h on h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = p_keys[c.place]
    where not exists (select from wallet_entries e where e.subject_id = c.id and e.kind = 'capture')
      and not exists (select from calls r where r.id = c.id and r.user_id = p_users[c.place])
  ), decided as (
    select f.*, case when f.covered then f.captured else 0 end as charged,
      case when f.covered or f.captured = 0 then f.outcome else 'lost' end as result
    from unsettled f
  ), counted as (
    select c.*, count(*) filter (where c.charged > 0) over up_to_call as number,
      (sum(c.charged) over up_to_call)::bigint as total
    from decided c window up_to_call as (partition by c.place order by c.n)
  )
  select array_agg(id), array_agg(place), array_agg(case when charged > 0 then number else 0 end), array_agg(total),
    array_agg(started_ms), array_agg(amount), array_agg(charged), array_agg(result), array_agg(status),
    array_agg(account), array_agg(usage), array_agg(vendor), array_agg(model), array_agg(route),
    array_agg(sandbox), array_agg(trace),
    (select array_agg((select coalesce(max(c.number), 0) from counted c where c.place = k.n) order by k.n)
      from unnest(p_keys) with ordinality as k(key, n)),
    (select array_agg((select coalesce(max(c.total), 0) from counted c where c.place = k.n) order by k.n)
      from unnest(p_keys) with ordinality as k(key, n))
  into p_ended, p_places, p_numbers, p_totals, p_started_ms, p_amounts, p_captured, p_outcomes, p_statuses, p_accounts,
    p_usages, p_vendors, p_models, p_routes, p_sandboxes, p_traces, p_captures, p_charged
  from counted;
  return query select * from reservations_settle(
    p_keys, p_users, p_holds, p_needs, p_extras, p_captures, p_charged, p_ended, p_places, p_numbers, p_totals,
    p_started_ms, p_amounts, p_captured, p_outcomes, p_statuses, p_accounts, p_usages, p_vendors, p_models, p_routes,
    p_sandboxes, p_traces, p_process, p_throttle, p_alerts, p_now);
end $$;
