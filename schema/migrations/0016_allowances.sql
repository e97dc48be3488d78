-- Allowances: what a process holds ahead for an API key that calls often, so that its calls need no
-- commit of their own before they go upstream (ADR 0116).

alter table holds drop constraint holds_kind_check;
alter table holds add constraint holds_kind_check check (kind in ('task', 'call', 'allowance'));
alter table holds add column api_key_id text;
-- One of a key in a process.
create unique index holds_allowances on holds (api_key_id, process_id) where kind = 'allowance';

-- What has become of an allowance: how much it is now, and whether its key is alive and until when. A
-- row without a key is an alert that belongs into this transaction: what was available, and the threshold.
create type allowance_notice as
  (api_key_id text, granted bigint, available bigint, alive boolean, expires_at timestamptz, user_id uuid, threshold bigint);

-- Settles calls that were drawn on the allowances of a process, and puts in the place of each allowance one
-- of another size: `p_needs` for the calls that are running, and `p_extras` for those to come. An
-- allowance that is to be 0 is closed. It grows by a sixteenth of what is available at most, and not at all
-- when its key is dead; what was granted before and is still wanted stays granted, as calls may be drawn on it.
-- Never captures more than the call was drawn for.
-- Safe to repeat: a call that was captured is passed over, and sizes are absolute. A call without
-- cover (a sweep took this process for dead) is lost, in the customer's favour.
-- Raises GW428 when an alert is due and the caller has no transaction to emit it in.
create function allowances_write(
  p_keys text[], p_users uuid[], p_holds uuid[], p_needs bigint[], p_extras bigint[],
  p_ended uuid[], p_drawn_on text[], p_begun timestamptz[], p_amounts bigint[], p_captured bigint[],
  p_outcomes text[], p_statuses integer[], p_accounts text[], p_usages text[],
  p_vendors text[], p_models text[], p_routes text[], p_sandboxes boolean[], p_traces text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof allowance_notice language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  notices allowance_notice[];
  crossed wallet_crossing[];
  idle boolean;
begin
  -- In one order, so that batches cannot deadlock. The next statement sees what others have committed.
  perform from wallets w where w.user_id = any (p_users) order by w.user_id for no key update;
  -- Who revokes a key waits for an allowance that is being opened, or it is revoked before: `revokeKey` sees it.
  perform from api_keys k
  where k.id = any (p_keys) and not exists (
    select from holds h where h.kind = 'allowance' and h.process_id = p_process and h.api_key_id = k.id
  ) order by k.id for share of k;
  with wallet as materialized (
    select w.user_id, w.settled, w.held, w.entry_count, w.trigger_threshold, w.state
    from wallets w where w.user_id = any (p_users)
  ), gone as materialized (
    delete from holds h where h.kind = 'allowance' and h.process_id = p_process and h.api_key_id = any (p_keys)
    returning h.id, h.api_key_id as key, h.user_id, h.amount
  ), ended as materialized (
    select x.*, t.user_id, g.id as hold_id, least(x.cost, x.amount) as captured,
      sum(case when e.subject_id is null then least(x.cost, x.amount) else 0 end) over (partition by x.key order by x.n) as drawn,
      e.subject_id is not null as known, g.amount as cover
    from unnest(p_ended, p_drawn_on, p_begun, p_amounts, p_captured, p_outcomes, p_statuses, p_accounts, p_usages,
        p_vendors, p_models, p_routes, p_sandboxes, p_traces) with ordinality
      as x(id, key, begun, amount, cost, outcome, status, account, usage, vendor, model, route, sandbox, trace, n)
    join unnest(p_keys, p_users) as t(key, user_id) on t.key = x.key
    left join gone g on g.key = x.key
    left join lateral (
      select e.subject_id from wallet_entries e where e.subject_id = x.id and e.kind = 'capture' offset 0
    ) e on true
  ), closed as materialized (
    select e.*, case when e.drawn <= e.cover then e.captured else 0 end as charged,
      case when e.drawn <= e.cover or e.captured = 0 then e.outcome else 'lost' end as result
    from ended e where not e.known
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at)
    select id, user_id, key, vendor, model, route, account, result, status, amount, charged,
      usage::jsonb, sandbox, trace, begun, p_now
    from closed
    on conflict do nothing
  ), wanted as (
    select x.key, x.user_id, x.hold, k.id is not null as alive, k.expires_at,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as idle,
      coalesce(g.amount, 0) as before, coalesce(c.charged, 0) as charged, x.needs, x.extra,
      -- What is left of the old one, as far as it is wanted, is free in any case
      least(x.needs + x.extra, coalesce(g.amount, 0) - coalesce(c.charged, 0)) as kept
    from unnest(p_keys, p_users, p_holds, p_needs, p_extras) as x(key, user_id, hold, needs, extra)
    left join gone g on g.key = x.key
    left join (select key, sum(charged)::bigint as charged from closed group by key) c on c.key = x.key
    left join (
      select k.id, k.user_id, k.expires_at, k.last_used_at from api_keys k
      where k.id = any (p_keys) and k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
        and 'inference' = any (k.scopes)
    ) k on k.id = x.key and k.user_id = x.user_id
  ), room as materialized (
    select w.user_id, (w.settled - w.held + sum(t.before - t.charged - t.kept))::bigint as free
    from wallet w join wanted t on t.user_id = w.user_id group by w.user_id, w.settled, w.held
  ), sized as materialized (
    select t.*, t.kept + case when t.alive and r.free > 0
        then least(t.needs + t.extra - t.kept, r.free / 16 / count(*) over (partition by t.user_id)) else 0 end as granted,
      r.free
    from wanted t join room r on r.user_id = t.user_id
  ), opened as (
    insert into holds (id, user_id, kind, amount, created_at, process_id, api_key_id)
    select hold, user_id, 'allowance', granted, p_now, p_process, key from sized where granted > 0
  ), lines as (
    select user_id, hold as id, key, 3 as place, 0 as n, 'hold' as kind, granted as amount, 0 as settles, granted as holds,
      null as note, null as trace
    from sized where granted > 0
    union all
    select g.user_id, g.id, g.key, 1, 0, 'release', g.amount - s.charged, 0, s.charged - g.amount, null, null
    from gone g join sized s on s.key = g.key where g.amount > s.charged
    union all
    select user_id, id, key, 2, n, 'capture', charged, -charged, -charged, hold_id::text, trace from closed where charged > 0
  ), numbered as (
    select l.user_id, l.id, l.kind, l.amount, l.note, l.trace, w.trigger_threshold, w.state,
      w.entry_count + row_number() over line as seq,
      (w.settled + sum(l.settles) over line)::bigint as settled_after,
      (w.held + sum(l.holds) over line)::bigint as held_after
    from lines l join wallet w on w.user_id = l.user_id
    window line as (partition by l.user_id order by l.place, l.key, l.n rows unbounded preceding)
  ), ledger as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, note, trace_id, created_at)
    select user_id, seq, kind, amount, settled_after, held_after, kind || ':' || id, id, note, trace, p_now from numbered
  ), written as (
    update wallets u set settled = u.settled + s.settles, held = u.held + s.holds, entry_count = u.entry_count + s.lines
    from (
      select user_id, count(*) as lines, sum(settles)::bigint as settles, sum(holds)::bigint as holds
      from lines group by user_id
    ) s
    where u.user_id = s.user_id
  )
  select
    array_agg((s.key, s.granted, s.free, s.alive, s.expires_at, null, null)::allowance_notice),
    bool_or(s.idle and s.alive),
    (select array_agg((n.user_id, n.settled_after - n.held_after, n.trigger_threshold)::wallet_crossing order by n.seq)
      from numbered n where n.kind = 'capture' and n.settled_after < n.trigger_threshold and n.state = 'NORMAL')
  into notices, idle, crossed from sized s;
  if idle then perform api_keys_used(p_keys, p_now); end if;
  if crossed is not null then
    notices := notices || array(
      select (null, null, a.available, null, null, a.user_id, a.threshold)::allowance_notice
      from wallet_alerts(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  return query select * from unnest(notices);
end $$;
