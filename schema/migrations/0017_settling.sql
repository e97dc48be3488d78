-- Calls that were drawn are settled in half the time: what they cost the database is a good part of what the
-- gateway costs (ADR 0120).

-- One index where there were two: a receipt is only ever looked for among those of its user.
alter table calls drop constraint calls_pkey;
drop index calls_user;
alter table calls add primary key (user_id, id, created_at);

drop function allowances_write(text[], uuid[], uuid[], bigint[], bigint[], uuid[], text[], timestamptz[], bigint[],
  bigint[], text[], integer[], text[], text[], text[], text[], text[], boolean[], text[], text, interval, boolean,
  timestamptz);

-- Settles calls that were drawn on the allowances of a process, and puts in the place of each allowance one
-- of another size: `p_needs` for the calls that are running, and `p_extras` for those to come. An
-- allowance that is to be 0 is closed. It grows by a sixteenth of what is available at most, and not at all
-- when its key is dead; what was granted before and is still wanted stays granted, as calls may be drawn on it.
-- The caller has counted, so that nothing has to be sorted or looked up here: `p_places` is the place of a
-- call's key in `p_keys`, `p_lines` that of its capture among those of its key (0: it costs nothing), and
-- `p_drawn` what these come to with it; `p_captures` and `p_charged` are the same of the whole key.
-- Raises unique_violation when a call is settled already, GW409 when an allowance does not cover its calls, and
-- GW428 when an alert is due and the caller has no transaction to emit it in: `allowances_settle_again` then.
create function allowances_settle(
  p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[], p_captures bigint[], p_charged bigint[],
  p_ended uuid[], p_places integer[], p_lines bigint[], p_drawn bigint[], p_begun bigint[], p_amounts bigint[],
  p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[],
  p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof allowance_notice language plpgsql
set plan_cache_mode = force_generic_plan as $$
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

-- The same for a batch that `allowances_settle` refused; emits alerts. A call that was settled is passed over, and
-- one without cover (a sweep took this process for dead) is lost, in the customer's favour. Sizes are
-- absolute, so that a batch may be repeated, with more.
create function allowances_settle_again(
  p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[], p_captures bigint[], p_charged bigint[],
  p_ended uuid[], p_places integer[], p_lines bigint[], p_drawn bigint[], p_begun bigint[], p_amounts bigint[],
  p_captured bigint[], p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[],
  p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof allowance_notice language plpgsql as $$
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
