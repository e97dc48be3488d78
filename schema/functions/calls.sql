-- Metered passthrough calls: holds, settlement and receipts, many in one transaction (ADR 0072, 0116).
--
-- Every function locks its wallets in order of id, so that batches cannot deadlock. The statement after the lock sees
-- what other transactions have committed. One plan serves all batches, however large the first ones were
-- (`plan_cache_mode`). Only a late charge can exceed what was held.

-- The remaining spend limits of these keys for starting calls, one row per call: the period in which its hold counts,
-- and the reason if it is refused. The cheapest calls of a key are accepted first. Nulls for keys without a spend
-- limit. The caller has locked the wallets.
create or replace function calls_budget(
  p_started uuid[], p_keys text[], p_amounts bigint[], out epochs integer[], out refusals text[]
) language sql as $$
  select array_agg(c.epoch order by c.n), array_agg(c.refused order by c.n)
  from (
    select x.n, b.epoch,
      case when sum(x.amount) over (partition by x.key order by x.amount, x.id rows unbounded preceding)
          > greatest(0, k.spend_limit - b.spent - b.held)
        then 'budget_' || k.spend_reset end as refused
    from unnest(p_started, p_keys, p_amounts) with ordinality as x(id, key, amount, n)
    left join api_keys k on k.id = x.key and k.spend_limit is not null
    left join key_budgets b on b.api_key_id = k.id
  ) c
$$;

-- Counts ended calls in the budgets of their keys, while their holds still exist: runs before calls_write settles them.
create or replace function calls_budget_settle(p_ended uuid[], p_ended_users uuid[], p_captured bigint[])
returns void language sql as $$
  update key_budgets b set held = b.held - s.amount, spent = b.spent + s.captured
  from (
    select h.api_key_id, h.budget_epoch, sum(h.amount)::bigint as amount,
      sum(least(x.captured, h.amount))::bigint as captured
    from holds h join unnest(p_ended, p_captured) as x(id, captured) on x.id = h.id
    where h.id = any (p_ended) and h.user_id = any (p_ended_users) and h.kind = 'call' and h.budget_epoch is not null
    group by h.api_key_id, h.budget_epoch
  ) s
  where b.api_key_id = s.api_key_id and b.epoch = s.budget_epoch
$$;

-- Counts the holds of accepted calls. Returns a row for each call whose key has a spend limit, with what is left of the
-- limit (`available`).
create or replace function calls_budget_hold(
  p_started uuid[], p_keys text[], p_amounts bigint[], p_epochs integer[], p_results calls_write_result[]
) returns setof calls_write_result language plpgsql as $$
begin
  update key_budgets b set held = b.held + s.amount
  from (
    select x.key, sum(x.amount)::bigint as amount
    from unnest(p_started, p_keys, p_amounts, p_epochs) as x(id, key, amount, epoch)
    where x.epoch is not null
      and not exists (select from unnest(p_results) r where r.id = x.id and r.refused is not null)
    group by x.key
  ) s
  where b.api_key_id = s.key;
  return query
    select x.id, null::text, null::uuid, greatest(0, k.spend_limit - b.spent - b.held), null::bigint
    from unnest(p_started, p_keys, p_epochs) as x(id, key, epoch)
    join api_keys k on k.id = x.key
    join key_budgets b on b.api_key_id = x.key
    where x.epoch is not null;
end $$;

-- Late charges (docs/reference/wallet.md#late-charges), at most one per call, in the current budget period. Calls that
-- ended after their holds were released (another process considered theirs dead and wrote `lost` on their receipts) are
-- charged at most what they had held. Calls that were settled but cost more than they held are charged the difference
-- (`beyond` in p_usages). All other calls are skipped. The caller has locked the wallets. Returns the charges that
-- cross the threshold of the balance alert.
create or replace function calls_charge_late(
  p_calls uuid[], p_users uuid[], p_captured bigint[], p_statuses integer[], p_accounts text[], p_usages text[],
  p_now timestamptz
) returns setof threshold_crossing language plpgsql as $$
declare
  used usage_sum[];
  charged account_days[];
  crossed threshold_crossing[];
begin
  with charges as materialized (
    update calls c set outcome = 'settled', charged_late = true, captured = c.captured + x.charged,
      held = greatest(c.held, c.captured + x.charged),
      http_status = x.status, account_id = x.account, ended_at = p_now,
      vendor = coalesce(x.usage #>> '{alias,vendor}', c.vendor),
      model = coalesce(x.usage #>> '{alias,model}', c.model),
      route = coalesce(x.usage #>> '{alias,route}', c.route),
      usage = nullif(x.usage - '{beyond,catalog,request,first_token_ms,alias}'::text[], '{}'),
      request_id = x.usage ->> 'request', first_token_ms = (x.usage ->> 'first_token_ms')::integer,
      alias = nullif((x.usage -> 'alias') - '{vendor,model,route}'::text[], '{}')
    from (
      select u.id, u.user_id, u.status, u.account, u.usage, r.created_at, r.outcome = 'lost' as first,
        r.ended_at as lost_at, r.vendor as lost_vendor, coalesce(r.model, '') as lost_model,
        case r.outcome when 'lost' then least(u.captured, r.held) else (u.usage ->> 'beyond')::bigint end as charged
      from (
        select v.id, v.user_id, v.captured, v.status, v.account, v.usage::jsonb as usage
        from unnest(p_calls, p_users, p_captured, p_statuses, p_accounts, p_usages)
          as v(id, user_id, captured, status, account, usage)
        where v.captured > 0
      ) u
      join calls r on r.user_id = u.user_id and r.id = u.id
      where r.outcome = 'lost' or r.outcome = 'settled' and not r.charged_late and u.usage ? 'beyond'
    ) x
    where c.user_id = x.user_id and c.id = x.id and c.created_at = x.created_at and x.charged > 0
    returning c.id, c.user_id, coalesce(c.api_key_id, '') as key, c.vendor, coalesce(c.model, '') as model, c.sandbox,
      case when x.first then c.usage end as usage, x.first, x.charged as captured, c.account_id, c.trace_id,
      c.created_at, x.lost_at, x.lost_vendor, x.lost_model
  ), numbered as (
    select l.*, w.held, w.trigger_threshold, w.state, w.entry_count + row_number() over ledger as seq,
      (w.settled - sum(l.captured) over ledger)::bigint as settled_after
    from charges l join wallets w on w.user_id = l.user_id
    window ledger as (partition by l.user_id order by l.id rows unbounded preceding)
  ), inserted as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select user_id, seq, 'late_charge', captured, settled_after, held, 'late_charge:' || id, id, trace_id, p_now
    from numbered
    returning user_id, seq, settled_after, ctid::text as place
  ), updated as (
    update wallets u set settled = i.settled_after, entry_count = i.seq, last_entry = i.place
    from (select distinct on (user_id) * from inserted order by user_id, seq desc) i where u.user_id = i.user_id
  )
  select
    array_agg((n.user_id, p_now, n.key, n.vendor, n.model, n.sandbox, n.first::integer,
        coalesce((n.usage ->> 'inputTokens')::float8, 0), coalesce((n.usage ->> 'cachedInputTokens')::float8, 0),
        coalesce((n.usage ->> 'outputTokens')::float8, 0), 0, 0, 0, 0, n.captured, 0, 0,
        case when n.first then durations_of(n.created_at, p_now) end)::usage_sum)
      -- The call no longer counts as an error.
      || array_agg((n.user_id, n.lost_at, n.key, n.lost_vendor, n.lost_model, n.sandbox, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        -n.first::integer, null)::usage_sum),
    array_agg(((p_now at time zone 'UTC')::date, n.account_id, 0, n.captured)::account_days)
      filter (where n.account_id is not null),
    array_agg((n.user_id, n.settled_after - n.held, n.trigger_threshold)::threshold_crossing order by n.user_id, n.seq)
      filter (where n.settled_after < n.trigger_threshold and n.state = 'NORMAL')
  into used, charged, crossed from numbered n;
  if used is null then return; end if;
  perform key_budgets_renew(array(select u.api_key_id from unnest(used) u), p_now);
  update key_budgets b set spent = b.spent + u.credits
    from (select o.api_key_id, sum(o.credits)::bigint as credits from unnest(used) o group by o.api_key_id) u
    where b.api_key_id = u.api_key_id;
  perform usage_add(used);
  -- Rows that counted nothing but these errors
  delete from usage_days d where d.user_id = any (p_users) and (d.requests, d.errors, d.credits) = (0, 0, 0)
    and d.day = any (array(select (u.at at time zone 'UTC')::date from unnest(used) u));
  delete from usage_hours h where h.user_id = any (p_users) and (h.requests, h.errors, h.credits) = (0, 0, 0)
    and h.hour = any (array(select date_trunc('hour', u.at, 'UTC') from unnest(used) u));
  if charged is not null then perform account_days_add(charged); end if;
  return query select * from unnest(crossed);
end $$;

-- Settles ended calls, then takes holds for starting ones. Both are typed arrays with one element per call. The
-- statement that deletes a hold settles it. An ended call without a hold is charged late if its receipt says `lost`;
-- otherwise it is skipped, because it was settled before. Costs beyond a hold (`beyond`, the first member of p_usages)
-- are charged late too. Of the calls that start on one wallet, the cheapest are held first, so that the wallet covers
-- as many as possible.
-- `p_receipts`: the receipt of a starting call (`holds.call`). `checked`: set if the caller has checked the key's other
-- limits, with the models that the key allowed at that time. `rotation`: identifies the secret with which the caller
-- authenticated the key.
-- p_usages: includes the vendor's id of the request as `request`, for a stream `first_token_ms`, and `alias` if another
-- model than the one in the hold responded: its vendor, model and route, and for an alias its name and the skipped
-- models.
-- Returns refusals (`key`, `balance`, and `budget_` with the reset of the spend limit), the credits left of spend
-- limits, and balance alerts. Raises GW428 if an alert is due but the caller has no transaction to publish it in
-- (`p_alerts` is false).
create or replace function calls_write(
  p_ended ended_calls, p_started started_calls, p_process text, p_throttle interval, p_alerts boolean,
  p_now timestamptz
) returns setof calls_write_result language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  results calls_write_result[];
  crossed threshold_crossing[];
  touch boolean;
  limited boolean;
  epochs integer[];
  refusals text[];
  used usage_sum[];
  charged account_days[];
  settled integer;
begin
  select bool_or(l.key_limits) into limited from (
    select w.key_limits from wallets w where w.user_id = any (p_ended.users || p_started.users)
    order by w.user_id for no key update) l;
  if limited then
    perform key_budgets_renew(p_started.keys, p_now);
    perform calls_budget_settle(p_ended.ids, p_ended.users, p_ended.captured);
    select * into epochs, refusals from calls_budget(p_started.ids, p_started.keys, p_started.amounts);
  end if;
  with wallet as materialized (
    select w.user_id, w.settled, w.held, w.entry_count, w.trigger_threshold, w.state
    from wallets w where w.user_id = any (p_ended.users || p_started.users)
  ), deleted as (
    delete from holds h where h.id = any (p_ended.ids) and h.user_id = any (p_ended.users) and h.kind = 'call'
    returning h.*
  ), ended as materialized (
    select g.id, g.user_id, g.amount, g.created_at, least(x.captured, g.amount) as captured, x.outcome, x.status,
      x.account, x.usage, n.*
    from deleted g
    join unnest(p_ended.ids, p_ended.captured, p_ended.outcomes, p_ended.statuses, p_ended.accounts, p_ended.usages)
      as x(id, captured, outcome, status, account, usage) on x.id = g.id
    cross join lateral json_to_record(g.call)
      as n(key text, vendor text, model text, route text, sandbox boolean, trace text, catalog integer)
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at, catalog_id, request_id, first_token_ms, alias)
    select id, user_id, key, coalesce(usage::jsonb #>> '{alias,vendor}', vendor),
      coalesce(usage::jsonb #>> '{alias,model}', model), coalesce(usage::jsonb #>> '{alias,route}', route), account,
      outcome, status, amount, captured,
      nullif(usage::jsonb - '{beyond,request,first_token_ms,alias}'::text[], '{}'), sandbox, trace, created_at, p_now, catalog,
      usage::jsonb ->> 'request', (usage::jsonb ->> 'first_token_ms')::integer,
      nullif((usage::jsonb -> 'alias') - '{vendor,model,route}'::text[], '{}')
    from ended
    returning user_id, api_key_id, vendor, model, outcome, captured, usage, sandbox, created_at
  ), freed as (
    select user_id, sum(captured)::bigint as captured, sum(amount)::bigint as amount from ended group by user_id
  ), known as (
    select x.*, k.id is not null and case
        when x.receipt::json ->> 'checked' is null then k.unlimited
          and (k.rotations = 0 or coalesce((x.receipt::json ->> 'rotation')::integer = k.rotations, true))
        else (k.unlimited
            or coalesce(x.receipt::jsonb #> '{checked,models}' = coalesce(to_jsonb(k.allowed_models), 'null'), false))
          and (k.rotations = 0 or coalesce((x.receipt::json ->> 'rotation')::integer >= k.rotations
            - case when k.previous_key_until > p_now then 1 else 0 end, true))
        end as alive,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as touch
    from unnest(p_started.ids, p_started.users, p_started.keys, p_started.amounts, p_started.receipts, epochs, refusals)
      as x(id, user_id, key, amount, receipt, epoch, refusal)
    left join (
      select k.id, k.last_used_at, k.rotations, k.previous_key_until, k.allowed_models, k.allowed_models is null
        and k.rate_limit_per_minute is null and k.user_rate_limit_per_minute is null as unlimited
      from api_keys k
      where k.id = any (p_started.keys) and k.revoked_at is null and k.disabled_at is null
        and (k.expires_at is null or k.expires_at > p_now)
        and 'inference' = any (k.scopes)
    ) k on k.id = x.key
  ), started as (
    select k.*, sum(k.amount) filter (where k.alive and k.refusal is null)
        over (partition by k.user_id order by k.amount, k.id rows unbounded preceding) as total
    from known k
  ), decided as materialized (
    select s.id, s.user_id, s.key, s.amount, s.receipt, s.epoch, s.touch, case
        when not s.alive then 'key'
        when s.refusal is not null then s.refusal
        when w.user_id is null or s.total > w.settled - coalesce(f.captured, 0) - w.held + coalesce(f.amount, 0)
          then 'balance'
      end as refused
    from started s left join wallet w on w.user_id = s.user_id left join freed f on f.user_id = s.user_id
  ), opened as (
    insert into holds (id, user_id, kind, amount, created_at, process_id, call, api_key_id, budget_epoch)
    select id, user_id, 'call', amount, p_now, p_process, receipt::json, case when epoch is not null then key end, epoch
    from decided where refused is null
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
    -- The capture and the release of a call are adjacent; the holds come last.
    window ledger as (partition by l.user_id order by l.step = 3, l.id, l.step rows unbounded preceding)
  ), inserted as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select user_id, seq, kind, amount, settled_after, held_after, kind || ':' || id, id, trace, p_now from numbered
    returning user_id, seq, ctid::text as place
  ), updated as (
    update wallets u set settled = u.settled + s.settled_by, held = u.held + s.held_by,
      entry_count = u.entry_count + s.entries, last_entry = i.place
    from (
      select user_id, count(*) as entries, sum(settled_by)::bigint as settled_by, sum(held_by)::bigint as held_by
      from entries group by user_id
    ) s
    left join (select distinct on (user_id) user_id, place from inserted order by user_id, seq desc) i
      on i.user_id = s.user_id
    where u.user_id = s.user_id
  )
  select
    array_agg((j.id, j.refused, null, null, null)::calls_write_result) filter (where j.refused is not null),
    bool_or(j.touch),
    (select array_agg((u.user_id, p_now, u.key, u.vendor, u.model, u.sandbox, u.requests, u.input, u.cached, u.output,
        0, 0, 0, 0, u.credits, 0, u.errors, case when u.class is not null then array[u.class[1], u.requests::integer] end)::usage_sum)
      from (
        select r.user_id, coalesce(r.api_key_id, '') as key, r.vendor, coalesce(r.model, '') as model, r.sandbox,
          case when r.outcome = 'settled' then durations_of(r.created_at, p_now) end as class,
          count(*) filter (where r.outcome = 'settled') as requests, sum(r.captured) as credits,
          count(*) filter (where r.outcome <> 'settled') as errors,
          coalesce(sum((r.usage ->> 'inputTokens')::float8) filter (where r.outcome = 'settled'), 0) as input,
          coalesce(sum((r.usage ->> 'cachedInputTokens')::float8) filter (where r.outcome = 'settled'), 0) as cached,
          coalesce(sum((r.usage ->> 'outputTokens')::float8) filter (where r.outcome = 'settled'), 0) as output
        from receipts r group by 1, 2, 3, 4, 5, 6
      ) u),
    (select array_agg(((p_now at time zone 'UTC')::date, e.account, 0, e.captured)::account_days)
      from ended e where e.captured > 0 and e.account is not null),
    -- The balance after the charge that crosses the threshold, and after the release that belongs to the charge.
    (select array_agg((n.user_id, n.settled_after - n.held_after + n.rest, n.trigger_threshold)::threshold_crossing
        order by n.seq)
      from numbered n where n.kind = 'capture' and n.settled_after < n.trigger_threshold and n.state = 'NORMAL'),
    (select count(*) from ended)
  into results, touch, used, charged, crossed, settled from decided j;
  if settled < cardinality(p_ended.ids) or exists (select from unnest(p_ended.usages) u where u like '{"beyond"%') then
    crossed := crossed || array(
      select c::threshold_crossing
      from calls_charge_late(p_ended.ids, p_ended.users, p_ended.captured, p_ended.statuses, p_ended.accounts,
        p_ended.usages, p_now) c);
  end if;
  if limited then
    results := results || array(
      select h::calls_write_result
      from calls_budget_hold(p_started.ids, p_started.keys, p_started.amounts, epochs, results) h);
  end if;
  if used is not null then perform usage_add(used); end if;
  if charged is not null then perform account_days_add(charged); end if;
  if touch then perform api_keys_touch(p_started.keys, p_now); end if;
  if crossed is not null then
    results := results || array(
      select (null, null, a.user_id, a.available, a.threshold)::calls_write_result
      from wallet_alerts_raise(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  if results is not null then
    return query select * from unnest(results);
  end if;
end $$;

-- Raises the holds of calls to these amounts, as far as the wallets and the spend limits of the keys cover it (ADR
-- 0306). A hold that already has the amount is unchanged, so a batch may be repeated. A hold whose budget period has
-- ended does not count in the current one, so only the wallet limits it. For each wallet the smallest raises come
-- first. The caller has locked the wallets. Returns refusals: `balance`, `budget_` with the reset of the spend limit
-- and what is left of it as `available`, and `lost` for a call without a hold.
create or replace function calls_raise(p_raised raised_calls, p_now timestamptz)
returns setof calls_write_result language plpgsql as $$
begin
  perform key_budgets_renew(array(
    select h.api_key_id from holds h where h.id = any (p_raised.ids) and h.kind = 'call' and h.budget_epoch is not null
  ), p_now);
  return query
  with asked as materialized (
    select x.id, x.user_id, x.amount as target, h.id is null as lost, greatest(0, x.amount - h.amount) as raise,
      h.call ->> 'trace' as trace, b.api_key_id as key,
      case when k.spend_limit is not null then greatest(0, k.spend_limit - b.spent - b.held) end as budget,
      k.spend_reset
    from unnest(p_raised.ids, p_raised.users, p_raised.amounts) as x(id, user_id, amount)
    left join holds h on h.id = x.id and h.user_id = x.user_id and h.kind = 'call'
    left join key_budgets b on b.api_key_id = h.api_key_id and b.epoch = h.budget_epoch
    left join api_keys k on k.id = b.api_key_id
  ), limited as (
    select a.*, case when a.raise > 0
        and sum(a.raise) over (partition by a.key order by a.raise, a.id rows unbounded preceding) > a.budget
      then 'budget_' || a.spend_reset end as refusal
    from asked a
  ), decided as materialized (
    select l.*, case
        when l.lost then 'lost'
        when l.refusal is not null then l.refusal
        when l.raise > 0 and sum(l.raise) filter (where l.refusal is null)
            over (partition by l.user_id order by l.raise, l.id rows unbounded preceding) > w.settled - w.held
          then 'balance'
      end as refused,
      w.settled, w.held, w.entry_count
    from limited l join wallets w on w.user_id = l.user_id
  ), raised as materialized (
    select d.*, d.entry_count + row_number() over ledger as seq,
      (d.held + sum(d.raise) over ledger)::bigint as held_after
    from decided d where d.refused is null and d.raise > 0
    window ledger as (partition by d.user_id order by d.id rows unbounded preceding)
  ), held as (
    update holds h set amount = r.target from raised r where h.id = r.id
  ), counted as (
    update key_budgets b set held = b.held + s.raise
    from (select r.key, sum(r.raise)::bigint as raise from raised r where r.key is not null group by r.key) s
    where b.api_key_id = s.key
  ), inserted as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, slice_to, trace_id, created_at)
    select user_id, seq, 'hold', raise, settled, held_after, 'hold:' || id || ':' || target, id, target, trace, p_now
    from raised
    returning user_id, seq, held_after, ctid::text as place
  ), updated as (
    update wallets u set held = i.held_after, entry_count = i.seq, last_entry = i.place
    from (select distinct on (user_id) * from inserted order by user_id, seq desc) i where u.user_id = i.user_id
  )
  select d.id, d.refused, null::uuid, d.budget, null::bigint from decided d where d.refused is not null;
end $$;

-- calls_write for a batch that also raises holds. The raises come after the calls that end, which frees balance, and
-- before the calls that start, because running calls have priority over new ones.
create or replace function calls_write_raising(
  p_ended ended_calls, p_started started_calls, p_raised raised_calls, p_process text, p_throttle interval,
  p_alerts boolean, p_now timestamptz
) returns setof calls_write_result language plpgsql as $$
begin
  perform from wallets w where w.user_id = any (p_ended.users || p_started.users || p_raised.users)
    order by w.user_id for no key update;
  if cardinality(p_ended.ids) > 0 then
    return query select * from calls_write(
      p_ended, row('{}', '{}', '{}', '{}', '{}')::started_calls, p_process, p_throttle, p_alerts, p_now);
  end if;
  return query select * from calls_raise(p_raised, p_now);
  if cardinality(p_started.ids) > 0 then
    return query select * from calls_write(
      row('{}', '{}', '{}', '{}', '{}', '{}', '{}')::ended_calls, p_started, p_process, p_throttle, p_alerts, p_now);
  end if;
end $$;

-- Counts the charges and releases of reservations_renew in advance. Returns for each key the current period, what is
-- left in it, and when it ends (nulls for a key without a spend limit).
create or replace function reservations_budget_settle(
  p_keys text[], p_charged bigint[], p_process text, p_now timestamptz,
  out epochs integer[], out lefts bigint[], out ends timestamptz[]
) language plpgsql as $$
begin
  perform key_budgets_renew(p_keys, p_now);
  perform key_budget_settle(h, x.charged)
    from unnest(p_keys, p_charged) as x(key, charged)
    join holds h on h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = x.key
    where h.budget_epoch is not null;
  select array_agg(b.epoch order by x.n),
    array_agg(case when k.id is not null then greatest(0, k.spend_limit - b.spent - b.held) end order by x.n),
    array_agg(budget_period_end(k.spend_reset, b.since) order by x.n)
  into epochs, lefts, ends
  from unnest(p_keys) with ordinality as x(key, n)
  left join api_keys k on k.id = x.key and k.spend_limit is not null
  left join key_budgets b on b.api_key_id = k.id;
end $$;

-- Counts the reservations that a process opened in the current period.
create or replace function reservations_budget_hold(p_keys text[], p_process text) returns void language sql as $$
  update key_budgets b set held = b.held + h.amount
  from holds h
  where h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = any (p_keys)
    and b.api_key_id = h.api_key_id and b.epoch = h.budget_epoch
$$;

-- Settles calls that were paid from the reservations of a process, and replaces each reservation with one of another
-- amount: `needs` for calls in progress and `extras` for future calls. A reservation of 0 is closed. For calls in
-- progress, a reservation grows as far as the wallet and the spend limit cover it. For future calls, it grows by at
-- most a sixteenth of what is left then, and not at all if its key may not be used. What was reserved before and is
-- requested again stays reserved, because calls may already draw on it.
--
-- A reservation counts in the budget period in which it was opened. After that period it only shrinks, until its
-- running calls have ended, and is then reopened. A reservation that exceeds what a lowered limit leaves shrinks
-- likewise. `available` and `expires_at` take the limit into account too; `threshold` of a reservation is what is left
-- of the limit.
--
-- The caller has numbered and summed up the captures, so that nothing is sorted or looked up here (ADR 0072).
--
-- Raises unique_violation if a call was settled before, GW409 if a reservation does not cover its calls, and GW428 if
-- an alert is due but the caller has no transaction to publish it in (`p_alerts` is false). The caller then calls
-- reservations_renew_again.
create or replace function reservations_renew(
  p_sizes reservation_sizes, p_calls drawn_calls, p_used drawn_usage,
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof reservations_settle_result language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  results reservations_settle_result[];
  covered boolean;
  touch boolean;
  crossed threshold_crossing[];
  limited boolean;
  epochs integer[];
  lefts bigint[];
  ends timestamptz[];
begin
  -- The end of a key waits for this lock and then finds the key's first reservation, or was committed before and is
  -- visible below.
  select bool_or(l.key_limits) into limited from (
    select w.key_limits from wallets w where w.user_id = any (p_sizes.users) order by w.user_id for no key update) l;
  select bool_and(coalesce(h.amount, 0) >= x.charged) into covered
  from unnest(p_sizes.keys, p_sizes.charged) as x(key, charged)
  left join holds h on h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = x.key;
  if not covered then
    raise exception 'calls without cover' using errcode = 'GW409';
  end if;
  if limited then
    select * into epochs, lefts, ends from reservations_budget_settle(p_sizes.keys, p_sizes.charged, p_process, p_now);
  end if;
  with deleted as (
    delete from holds h where h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = any (p_sizes.keys)
    returning h.id, h.api_key_id as key, h.amount, h.budget_epoch as epoch
  ), requested as (
    select x.*, g.id as old_hold, coalesce(g.amount, 0) - x.charged as rest, w.settled, w.held, w.entry_count,
      w.trigger_threshold, w.state,
      -- The reservation was opened in another period and is still in use, so the new hold belongs to that period.
      g.id is not null and g.epoch is distinct from x.epoch and least(x.needs + x.extra, g.amount - x.charged) > 0
        as past,
      g.epoch as old_epoch,
      k.id is not null and w.settled >= w.held as alive, least(k.expires_at, x.period_end) as expires_at,
      k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as touch,
      -- The remainder of the old reservation needs no new balance, as far as it is requested again. After a late charge
      -- that the balance did not cover, nothing is kept for future calls.
      least(x.needs + case when w.settled >= w.held then x.extra else 0 end, coalesce(g.amount, 0) - x.charged) as kept
    from unnest(p_sizes.keys, p_sizes.rotations, p_sizes.users, p_sizes.holds, p_sizes.catalogs, p_sizes.needs,
        p_sizes.extras, p_sizes.captures, p_sizes.charged, epochs, lefts, ends) with ordinality
      as x(key, rotation, user_id, hold, catalog, needs, extra, captures, charged, epoch, budget, period_end, place)
    join wallets w on w.user_id = x.user_id
    left join deleted g on g.key = x.key
    left join api_keys k on k.id = x.key and k.user_id = x.user_id and k.revoked_at is null and k.disabled_at is null
      and (k.expires_at is null or k.expires_at > p_now) and 'inference' = any (k.scopes)
      -- Calls of a key with one of these limits are checked one by one.
      and k.allowed_models is null and k.rate_limit_per_minute is null and k.user_rate_limit_per_minute is null
      and (k.rotations = 0 or k.rotations = x.rotation)
  ), free as (
    select t.*, least(
        t.settled - t.held + sum(t.rest - t.kept) over per_wallet,
        case when t.budget is not null then greatest(0, t.budget - case when t.past then 0 else t.kept end) end
      ) as available,
      t.settled - t.held + sum(t.rest - t.kept) over per_wallet - sum(greatest(0, t.needs - t.kept)) over per_wallet
        as unneeded,
      -- What calls in progress need beyond what is kept, as far as the wallet covers it after the preceding keys.
      greatest(0, least(t.needs - t.kept,
        t.settled - t.held + sum(t.rest - t.kept) over per_wallet
          - coalesce(sum(greatest(0, t.needs - t.kept)) over keys_before, 0),
        case when t.budget is not null and not t.past then t.budget - t.kept end)) as grown,
      count(*) over per_wallet as keys
    from requested t
    window per_wallet as (partition by t.user_id),
      keys_before as (partition by t.user_id order by t.place rows between unbounded preceding and 1 preceding)
  ), sized as (
    select r.*, r.kept + r.grown + case when r.alive and not r.past and r.available - r.grown > 0
      then greatest(0, least(r.needs + r.extra - r.kept - r.grown,
        div(least(r.available - r.grown, r.unneeded), 16 * r.keys))) else 0 end::bigint as granted
    from free r
  ), numbered as materialized (
    -- For each wallet, all releases come first, then the captures, then the holds.
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
    insert into holds (id, user_id, kind, amount, created_at, process_id, api_key_id, budget_epoch, catalog_id)
    select hold, user_id, 'reservation', granted, p_now, p_process, key, case when past then old_epoch else epoch end,
      catalog
    from numbered where granted > 0
  ), receipts as (
    insert into calls
      (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
        usage, sandbox, trace_id, created_at, ended_at, catalog_id, request_id, first_token_ms)
    select c.id, p_sizes.users[c.place], p_sizes.keys[c.place], c.vendor, c.model, c.route, c.account, c.outcome,
      c.status, c.amount, c.captured, nullif(c.usage - '{beyond,catalog,request,first_token_ms}'::text[], '{}'), c.sandbox,
      c.trace,
      timestamptz 'epoch' + c.started_ms * interval '1 millisecond', p_now, (c.usage ->> 'catalog')::integer,
      c.usage ->> 'request', (c.usage ->> 'first_token_ms')::integer
    from (
      select unnest(p_calls.ids) as id, unnest(p_calls.places) as place, unnest(p_calls.vendors) as vendor,
        unnest(p_calls.models) as model, unnest(p_calls.routes) as route, unnest(p_calls.accounts) as account,
        unnest(p_calls.outcomes) as outcome, unnest(p_calls.statuses) as status, unnest(p_calls.amounts) as amount,
        unnest(p_calls.captured) as captured, unnest(p_calls.usages)::jsonb as usage,
        unnest(p_calls.sandboxes) as sandbox, unnest(p_calls.traces) as trace,
        unnest(p_calls.started_ms) as started_ms
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
      select unnest(p_calls.ids) as id, unnest(p_calls.places) as place, unnest(p_calls.numbers) as number,
        unnest(p_calls.totals) as total, unnest(p_calls.captured) as captured, unnest(p_calls.traces) as trace
    ) c join numbered p on p.place = c.place
    where c.number > 0
    union all
    select user_id, hold_seq, 'hold', granted, settled_after, held_after,
      'hold:' || hold, hold, null, null, p_now
    from numbered where granted > 0
    returning user_id, seq, ctid::text as place
  ), updated as (
    update wallets u set settled = p.settled_after, held = p.held_after, entry_count = p.hold_seq, last_entry = i.place
    from numbered p left join inserted i on i.user_id = p.user_id and i.seq = p.hold_seq
    where u.user_id = p.user_id and p.is_last
  )
  select
    array_agg((p.key, p.granted, p.available,
      p.alive and not p.past and coalesce(p.kept <= p.budget, true), p.expires_at, null,
      case when p.budget is not null then greatest(0, p.budget - case when p.past then 0 else p.granted end) end
    )::reservations_settle_result),
    bool_or(p.touch and p.alive),
    -- The balance after the charges and before the new holds.
    array_agg((p.user_id, p.settled_after - p.held_after_captures, p.trigger_threshold)::threshold_crossing
        order by p.user_id)
      filter (where p.charged > 0 and p.state = 'NORMAL' and p.settled_after < p.trigger_threshold)
  into results, touch, crossed from numbered p;
  if limited then perform reservations_budget_hold(p_sizes.keys, p_process); end if;
  if p_used.places <> '{}' then
    perform usage_add(array(
      select (p_sizes.users[u.place], p_now, p_sizes.keys[u.place], u.vendor, u.model, u.sandbox, u.requests, u.input,
        u.cached, u.output, 0, 0, 0, 0, u.credits, 0, u.errors, u.durations::integer[])::usage_sum
      from unnest(p_used.places, p_used.vendors, p_used.models, p_used.sandboxes, p_used.requests, p_used.input,
          p_used.cached, p_used.output, p_used.credits, p_used.errors, p_used.durations)
        as u(place, vendor, model, sandbox, requests, input, cached, output, credits, errors, durations)));
    perform account_days_add(array(
      select ((p_now at time zone 'UTC')::date, c.account, 0, c.captured)::account_days
      from unnest(p_calls.accounts, p_calls.captured) as c(account, captured)
      where c.account is not null and c.captured > 0));
  end if;
  if touch then perform api_keys_touch(p_sizes.keys, p_now); end if;
  if crossed is not null then
    results := results || array(
      select (null, null, a.available, null, null, a.user_id, a.threshold)::reservations_settle_result
      from wallet_alerts_raise(crossed, p_throttle, p_alerts, p_now) a);
  end if;
  return query select * from unnest(results);
end $$;

-- The same for a batch that reservations_renew refused, in a transaction that publishes its alerts. Skips a call that
-- was settled before. A call without cover (another process closed the reservation because it considered this process
-- dead) gets a receipt that says `lost`, and is then charged late. Amounts of reservations are absolute, so a batch may
-- be repeated, also with more calls.
create or replace function reservations_renew_again(
  p_sizes reservation_sizes, p_calls drawn_calls, p_process text, p_throttle interval, p_alerts boolean,
  p_now timestamptz
) returns setof reservations_settle_result language plpgsql as $$
declare
  crossed threshold_crossing[];
  -- The calls as passed, for late charges.
  calls constant drawn_calls := p_calls;
  users constant uuid[] := array(
    select p_sizes.users[x.place] from unnest(p_calls.places) with ordinality as x(place, n) order by x.n);
begin
  perform from wallets w where w.user_id = any (p_sizes.users) order by w.user_id for no key update;
  -- Nothing may draw on the reservation of a rotated key.
  p_sizes.rotations := null;
  with unsettled as (
    select c.*, sum(c.captured) over (partition by c.place order by c.n) <= coalesce(h.amount, 0) as covered
    from unnest(p_calls.ids, p_calls.places, p_calls.started_ms, p_calls.amounts, p_calls.captured, p_calls.outcomes,
        p_calls.statuses, p_calls.accounts, p_calls.usages, p_calls.vendors, p_calls.models, p_calls.routes,
        p_calls.sandboxes, p_calls.traces) with ordinality
      as c(id, place, started_ms, amount, captured, outcome, status, account, usage, vendor, model, route, sandbox,
        trace, n)
    left join holds h on h.kind = 'reservation' and h.process_id = p_process and h.api_key_id = p_sizes.keys[c.place]
    where not exists (select from calls r where r.id = c.id and r.user_id = p_sizes.users[c.place])
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
      from unnest(p_sizes.keys) with ordinality as k(key, n)),
    (select array_agg((select coalesce(max(c.total), 0) from counted c where c.place = k.n) order by k.n)
      from unnest(p_sizes.keys) with ordinality as k(key, n))
  into p_calls.ids, p_calls.places, p_calls.numbers, p_calls.totals, p_calls.started_ms, p_calls.amounts,
    p_calls.captured, p_calls.outcomes, p_calls.statuses, p_calls.accounts, p_calls.usages, p_calls.vendors,
    p_calls.models, p_calls.routes, p_calls.sandboxes, p_calls.traces, p_sizes.captures, p_sizes.charged
  from counted;
  -- Usage is summed up here.
  return query
  with used as (
    select c.place, c.vendor, coalesce(c.model, '') as model, c.sandbox, count(*) filter (where c.is_settled) as requests,
      coalesce(sum((c.usage::json ->> 'inputTokens')::float8) filter (where c.is_settled), 0)::bigint as input,
      coalesce(sum((c.usage::json ->> 'cachedInputTokens')::float8) filter (where c.is_settled), 0)::bigint as cached,
      coalesce(sum((c.usage::json ->> 'outputTokens')::float8) filter (where c.is_settled), 0)::bigint as output,
      sum(c.captured)::bigint as credits, count(*) filter (where not c.is_settled) as errors,
      (durations_sum(durations_of(timestamptz 'epoch' + c.started_ms * interval '1 millisecond', p_now))
        filter (where c.is_settled))::text as durations
    from (
      select x.*, x.outcome = 'settled' as is_settled
      from unnest(p_calls.places, p_calls.vendors, p_calls.models, p_calls.sandboxes, p_calls.outcomes, p_calls.usages,
          p_calls.captured, p_calls.started_ms)
        as x(place, vendor, model, sandbox, outcome, usage, captured, started_ms)
    ) c
    group by 1, 2, 3, 4
  )
  select r.* from (
    select coalesce(array_agg(place), '{}') as places, array_agg(vendor) as vendors, array_agg(model) as models,
      array_agg(sandbox) as sandboxes, array_agg(requests) as requests, array_agg(input) as input,
      array_agg(cached) as cached, array_agg(output) as output, array_agg(credits) as credits,
      array_agg(errors) as errors, array_agg(durations) as durations
    from used
  ) u cross join lateral reservations_renew(
    p_sizes, p_calls, (u.places, u.vendors, u.models, u.sandboxes, u.requests, u.input, u.cached, u.output,
      u.credits, u.errors, u.durations)::drawn_usage, p_process, p_throttle, p_alerts, p_now) r;
  crossed := array(
    select c::threshold_crossing
    from calls_charge_late(
      calls.ids, users, calls.captured, calls.statuses, calls.accounts, calls.usages, p_now) c);
  return query
    select null::text, null::bigint, a.available, null::boolean, null::timestamptz, a.user_id, a.threshold
    from wallet_alerts_raise(crossed, p_throttle, p_alerts, p_now) a;
end $$;

-- Stores what a call sent and received, and keeps the newest p_max of the user. Stores nothing if the user no longer
-- wants calls kept; the lock makes this wait for a change of that setting.
create or replace function call_content_add(
  p_user uuid, p_call uuid, p_sealed bytea, p_max integer, p_now timestamptz
) returns void language plpgsql as $$
begin
  perform from users u where u.id = p_user and u.keeps_calls for no key update;
  if not found then return; end if;
  insert into call_contents (user_id, call_id, sealed, created_at) values (p_user, p_call, p_sealed, p_now)
    on conflict do nothing;
  delete from call_contents c where c.user_id = p_user and c.call_id <= (
    select o.call_id from call_contents o where o.user_id = p_user order by o.call_id desc offset p_max limit 1);
end $$;
