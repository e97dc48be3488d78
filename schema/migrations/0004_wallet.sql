-- The wallet: invariants stated to the database, and verbs that many callers share in one commit.

-- Contract 6, as far as a constraint can state it.
alter table wallets
  add constraint wallets_entry_count_not_negative check (entry_count >= 0),
  add constraint wallets_empty_before_first_entry check (entry_count > 0 or (settled = 0 and held = 0));
alter table holds
  add constraint holds_wallet foreign key (user_id) references wallets;
-- What a repeated top-up or adjustment is answered: the wallet as it was after the first.
alter table wallet_entries
  add column state_after text,
  add column threshold_after bigint,
  add constraint wallet_entries_wallet foreign key (user_id) references wallets,
  add constraint wallet_entries_amount check (
    case kind
      when 'adjustment' then amount <> 0
      when 'top_up' then amount > 0
      when 'capture' then amount > 0
      else amount >= 0
    end),
  -- With the unique operation id: a hold is opened, captured and released at most once each.
  add constraint wallet_entries_operation check (
    case when kind in ('hold', 'capture', 'release')
      then subject_id is not null and operation_id = kind || ':' || subject_id
      else subject_id is null and state_after is not null and threshold_after is not null
    end);

-- What the audit has seen of each wallet: the sums of its entries up to `seq`, so that the next round
-- reads new entries only. `drifting` is what the drift gauge counts (ADR 0061).
create table wallet_audits (
  user_id uuid primary key,
  seq bigint not null,
  settled bigint not null,
  held bigint not null,
  -- Every entry so far had the next number, and continued the balances of the one before.
  chained boolean not null,
  drifting boolean not null,
  checked_at timestamptz not null
);
create index wallet_audits_drifting on wallet_audits (user_id) where drifting;

-- When the last whole round ended: a gauge that reads 0 is worth nothing when nobody looks.
create table wallet_audit_rounds (
  only_row boolean primary key default true check (only_row),
  finished_at timestamptz not null,
  wallets bigint not null
);

-- A wallet equals its last ledger entry when the transaction commits, whoever wrote it.
create function wallet_matches_ledger() returns trigger language plpgsql as $$
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
create constraint trigger wallets_match_ledger
  after insert or update of settled, held, entry_count on wallets
  deferrable initially deferred for each row execute function wallet_matches_ledger();

drop function task_finish(uuid, integer, text, jsonb, jsonb, bigint, text, bytea, interval, timestamptz);
drop function task_accept(uuid, uuid, text, text, text, text, text, jsonb, boolean, bigint, timestamptz, text,
  timestamptz, text, bytea, text, bytea, text, timestamptz);
drop function wallet_close(uuid, bigint, interval, text, timestamptz);
drop function wallet_hold(uuid, uuid, text, bigint, text, timestamptz);
drop function ledger_add(wallets, text, bigint, text, uuid, text, text, timestamptz);

-- Verbs on a wallet row that the caller has locked and holds in a variable. `wallet_write` stores it,
-- once for all verbs of the transaction.

create function wallet_lock(p_user uuid) returns wallets language plpgsql as $$
declare w wallets;
begin
  select * into w from wallets where user_id = p_user for no key update;
  return w;
end $$;

create function wallet_write(w wallets) returns void language plpgsql as $$
begin
  update wallets set
      settled = w.settled, held = w.held, entry_count = w.entry_count, state = w.state,
      last_alert_at = w.last_alert_at, rearmed_by_top_up = w.rearmed_by_top_up
    where user_id = w.user_id;
end $$;

create function ledger_add(
  w wallets, p_kind text, p_amount bigint, p_subject uuid, p_trace text, p_now timestamptz
) returns void language plpgsql as $$
begin
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
  values
    (w.user_id, w.entry_count, p_kind, p_amount, w.settled, w.held, p_kind || ':' || p_subject, p_subject, p_trace, p_now);
end $$;

-- hold: the caller has seen that the available balance suffices; the wallet's check sees it again.
create function wallet_freeze(
  w wallets, p_id uuid, p_kind text, p_amount bigint, p_trace text, p_now timestamptz
) returns wallets language plpgsql as $$
begin
  w.held := w.held + p_amount;
  w.entry_count := w.entry_count + 1;
  insert into holds (id, user_id, kind, amount, created_at) values (p_id, w.user_id, p_kind, p_amount, p_now);
  perform ledger_add(w, 'hold', p_amount, p_id, p_trace, p_now);
  return w;
end $$;

-- settle and release of a hold that the caller has deleted: captures p_captured, frees the rest.
-- `alert`: balance.low is to be emitted in this transaction (contract 1: an edge on settled funds).
create function wallet_thaw(
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
  alert := p_captured > 0
    and w.settled < w.trigger_threshold
    and w.state = 'NORMAL'
    and (w.last_alert_at is null or w.rearmed_by_top_up or w.last_alert_at + p_throttle <= p_now)
    and exists (
      select 1 from webhook_endpoints e
      where e.user_id = h.user_id and e.enabled and e.deleted_at is null and 'balance.low' = any (e.events)
    );
  if alert then
    w.state := 'ALERTED';
    w.last_alert_at := p_now;
    w.rearmed_by_top_up := false;
  end if;
end $$;

-- topUp and adjustment. The same operation twice changes nothing and answers `repeated` with the
-- wallet as the first left it. Raises GW404 (no wallet), GW422 (the id was used for another change),
-- GW409 (an adjustment would leave less than what is held) and GW410 (more than a wallet can hold).
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
  select * into e from wallet_entries where operation_id = p_operation;
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

-- As before, without a plan made anew at each call.
create or replace function event_publish(
  p_id text, p_user uuid, p_type text, p_task uuid, p_body bytea, p_trace text, p_now timestamptz
) returns text[] language plpgsql as $$
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

-- Group commit (ADR 0060). Each function below takes a JSON array of calls that arrived together and
-- answers one row for each by its `n`. Calls on one wallet are done in order of arrival under one lock;
-- wallets are locked in order of id, and nothing that two transactions contend for is locked before its
-- wallet, so that batches of several processes cannot deadlock. A refused call (too low, replayed,
-- fenced) changes nothing and does not touch the others; an exception undoes the whole batch.

create type task_acceptance as (
  n integer, outcome text, request_hash bytea, status integer, body text, cost bigint, balance bigint, endpoints text[]
);

-- Accept (architecture, rule 1): hold, task, run, event, deliveries, idempotency record.
-- `outcome`: accepted, replayed (the row then is the first answer), balance_too_low, too_many_running
-- (the key has `running_max` unfinished tasks; exact, because all keys of a user share the wallet's lock).
create function task_accept_many(p_calls jsonb) returns setof task_acceptance language plpgsql as $$
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
      where operation_id = 'hold:' || c.task and user_id = c.user_id;
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

-- One acceptance. Raises GW402 when the available balance is lower than the price.
-- `replayed` is set when the idempotency key was used before; the row then is the first answer.
create function task_accept(
  p_task uuid, p_user uuid, p_api_key text, p_vendor text, p_model text, p_action text, p_kind text, p_body jsonb,
  p_sandbox boolean, p_price bigint, p_deadline timestamptz, p_trace text, p_now timestamptz,
  p_event text, p_event_body bytea, p_key text, p_request_hash bytea, p_answer text, p_key_since timestamptz,
  out replayed idempotency_keys, out balance bigint, out endpoints text[]
) language plpgsql as $$
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

-- Finish (architecture, rule 5): whoever deletes the run wins; with an epoch only its owner can.
-- A call without a row was fenced, or its task ended before: nothing changed.
create function task_finish_many(p_calls jsonb) returns table (
  n integer, user_id uuid, alert boolean, available bigint, threshold bigint, endpoints text[]
) language plpgsql as $$
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
    join tasks t on t.id = x.task
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

-- Holds of passthrough calls. `outcome`: held, repeated (nothing changed), balance_too_low.
create function call_hold_many(p_calls jsonb) returns table (n integer, outcome text, balance bigint)
language plpgsql as $$
declare
  c record;
  w wallets;
begin
  for c in
    select * from jsonb_to_recordset(p_calls) as x (
      n integer, id uuid, user_id uuid, amount bigint, trace text, now timestamptz)
    order by x.user_id, x.n
  loop
    if w.user_id is distinct from c.user_id then
      if w.user_id is not null then perform wallet_write(w); end if;
      w := wallet_lock(c.user_id);
    end if;
    n := c.n;
    if exists (select 1 from wallet_entries e where e.operation_id = 'hold:' || c.id and e.user_id = c.user_id) then
      outcome := 'repeated';
    elsif w.user_id is null or w.settled - w.held < c.amount then
      outcome := 'balance_too_low';
    else
      w := wallet_freeze(w, c.id, 'call', c.amount, c.trace, c.now);
      outcome := 'held';
    end if;
    balance := w.settled - w.held;
    return next;
  end loop;
  if w.user_id is not null then perform wallet_write(w); end if;
end $$;

-- Closes holds of passthrough calls: captures at most what was held and frees the rest.
-- `outcome`: closed, repeated (closed before: `captured` is what that captured), unknown.
create function call_close_many(p_calls jsonb) returns table (
  n integer, outcome text, captured bigint, user_id uuid, alert boolean, available bigint, threshold bigint
) language plpgsql as $$
declare
  c record;
  h holds;
  w wallets;
  thawed record;
begin
  for c in
    select x.*, e.user_id as owner, e.trace_id from jsonb_to_recordset(p_calls) as x (
      n integer, id uuid, captured bigint, throttle double precision, now timestamptz)
    left join wallet_entries e on e.operation_id = 'hold:' || x.id
    order by e.user_id, x.n
  loop
    n := c.n;
    user_id := c.owner;
    alert := false;
    if c.owner is null then
      outcome := 'unknown';
      captured := 0;
      return next;
      continue;
    end if;
    if w.user_id is distinct from c.owner then
      if w.user_id is not null then perform wallet_write(w); end if;
      w := wallet_lock(c.owner);
    end if;
    delete from holds where id = c.id and kind = 'call' returning * into h;
    if found then
      outcome := 'closed';
      captured := least(c.captured, h.amount);
      select * into thawed from wallet_thaw(w, h, captured, make_interval(secs => c.throttle), c.trace_id, c.now);
      w := thawed.w;
      alert := thawed.alert;
    else
      outcome := 'repeated';
      captured := coalesce((select e.amount from wallet_entries e where e.operation_id = 'capture:' || c.id), 0);
    end if;
    available := w.settled - w.held;
    threshold := w.trigger_threshold;
    return next;
  end loop;
  if w.user_id is not null then perform wallet_write(w); end if;
end $$;
