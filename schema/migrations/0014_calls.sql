-- Metered calls in one transaction a batch: what has ended is settled and what begins is held together,
-- as sets and not row by row (ADR 0100).

drop function calls_open(jsonb, text, timestamptz);
drop function calls_close(jsonb, interval, boolean, timestamptz);
drop function call_hold_many(jsonb);
drop function call_close_many(jsonb);

-- Read whole by the sweep and by nothing else; an index was one more write a call.
drop index holds_calls;
-- Written once and read once: no binary form needs to be made of it.
alter table holds alter column call type json using call::json;
-- A row lives for seconds.
alter table holds set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- A hold and a ledger row belong to a wallet, and a wallet stays: looked at once a statement, where a
-- foreign key looks once a row (an eighth of what a call cost).
alter table holds drop constraint holds_wallet;
alter table wallet_entries drop constraint wallet_entries_wallet;
create function rows_have_wallets() returns trigger language plpgsql as $$
begin
  if exists (
    select 1 from (select distinct a.user_id from added a) a
    where not exists (select 1 from wallets w where w.user_id = a.user_id)
  ) then
    raise exception 'a row of % has no wallet', tg_table_name using errcode = 'GW001';
  end if;
  return null;
end $$;
create trigger holds_have_wallets after insert on holds
  referencing new table as added for each statement execute function rows_have_wallets();
create trigger wallet_entries_have_wallets after insert on wallet_entries
  referencing new table as added for each statement execute function rows_have_wallets();
create trigger wallets_kept before delete or truncate on wallets
  for each statement execute function forbid_change();
create function forbid_other_wallet() returns trigger language plpgsql as $$
begin
  raise exception 'a row of % keeps its wallet', tg_table_name using errcode = 'GW001';
end $$;
create trigger holds_keep_wallet before update of user_id on holds
  for each row execute function forbid_other_wallet();
create trigger wallets_keep_user before update of user_id on wallets
  for each row execute function forbid_other_wallet();

-- A hold, a capture and a release are told apart by their subject and kind: one index where there were two.
alter table wallet_entries drop constraint wallet_entries_operation_id_key;
create unique index wallet_entries_operation_id on wallet_entries (operation_id) where subject_id is null;
drop index wallet_entries_subject;
create unique index wallet_entries_subject on wallet_entries (subject_id, kind) where subject_id is not null;

-- As before, by these indexes.
create or replace function task_accept_many(p_calls jsonb) returns setof task_acceptance language plpgsql as $$
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

create or replace function wallet_add(
  p_user uuid, p_kind text, p_amount bigint, p_operation text, p_note text, p_trace text, p_now timestamptz,
  out w wallets, out repeated boolean
) language plpgsql as $$
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

-- Is `balance.low` to be emitted for a charge that left this wallet (contract 1: an edge on settled
-- funds)? Only when somebody would hear of it.
create function wallet_alert_due(w wallets, p_throttle interval, p_now timestamptz)
returns boolean language plpgsql stable as $$
begin
  return w.settled < w.trigger_threshold
    and w.state = 'NORMAL'
    and (w.last_alert_at is null or w.rearmed_by_top_up or w.last_alert_at + p_throttle <= p_now)
    and exists (
      select 1 from webhook_endpoints e
      where e.user_id = w.user_id and e.enabled and e.deleted_at is null and 'balance.low' = any (e.events)
    );
end $$;

-- As before, with the rule above.
create or replace function wallet_thaw(
  inout w wallets, h holds, p_captured bigint, p_throttle interval, p_trace text, p_now timestamptz,
  out alert boolean
) language plpgsql as $$
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

-- A charge that left a wallet below its threshold, and what was available behind it.
create type wallet_crossing as (user_id uuid, available bigint, threshold bigint);

-- The alerts that are due for these charges, in their order: of one wallet the first emits. Raises GW428
-- when one is due and the caller (`p_alerts` is false) has no transaction to emit it in.
create function wallet_alerts(
  p_crossed wallet_crossing[], p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof wallet_crossing language plpgsql as $$
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

-- These keys were used: written once a minute.
create function api_keys_used(p_keys text[], p_now timestamptz) returns void language sql as $$
  update api_keys k set last_used_at = p_now
  where k.id = any (p_keys) and k.revoked_at is null
    and (k.last_used_at is null or k.last_used_at < p_now - interval '1 minute')
$$;

-- What a batch of calls has to say: a call that was refused ('key': revoked, expired or without the
-- scope by now; 'balance'), or a wallet whose balance alert belongs into this transaction.
create type call_notice as (id uuid, refused text, user_id uuid, available bigint, threshold bigint);

-- Settles the calls that have ended, then opens those that begin, each an array with a place a call.
-- Whoever deletes the hold settles; a call that is closed already is passed over. Never captures more
-- than was held. Of one wallet's calls that begin the smaller ones come first, so that as many as can be
-- paid are opened. Raises GW428 when an alert is due and the caller has no transaction to emit it in.
create function calls_write(
  p_ended uuid[], p_owners uuid[], p_captured bigint[], p_outcomes text[], p_statuses integer[],
  p_accounts text[], p_usages text[],
  p_ids uuid[], p_users uuid[], p_keys text[], p_amounts bigint[], p_notes text[],
  p_process text, p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof call_notice language plpgsql
-- One plan for all batches, however large the first were.
set plan_cache_mode = force_generic_plan as $$
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
