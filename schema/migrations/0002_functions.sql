-- The verbs that several rows belong to. Each is one call inside the caller's transaction.

-- Writes one numbered ledger row; the wallet row is locked by the caller's update of it.
create function ledger_add(
  w wallets, p_kind text, p_amount bigint, p_operation text, p_subject uuid,
  p_note text, p_trace text, p_now timestamptz
) returns void language sql as $$
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, note, trace_id, created_at)
  values
    (w.user_id, w.entry_count, p_kind, p_amount, w.settled, w.held, p_operation, p_subject, p_note, p_trace, p_now)
$$;

-- hold: freezes p_amount, or raises GW402 when the available balance is lower.
create function wallet_hold(
  p_user uuid, p_id uuid, p_kind text, p_amount bigint, p_trace text, p_now timestamptz
) returns wallets language plpgsql as $$
declare w wallets;
begin
  update wallets set held = held + p_amount, entry_count = entry_count + 1
    where user_id = p_user and settled - held >= p_amount
    returning * into w;
  if not found then
    raise exception 'balance too low for the hold' using errcode = 'GW402';
  end if;
  insert into holds (id, user_id, kind, amount, created_at) values (p_id, p_user, p_kind, p_amount, p_now);
  perform ledger_add(w, 'hold', p_amount, 'hold:' || p_id, p_id, null, p_trace, p_now);
  return w;
end $$;

-- settle and release in one: closes the hold, captures p_captured of it and frees the rest.
-- Answers the wallet after, and whether the balance alert is to be emitted in this transaction
-- (contract 1: an edge on settled funds; the state moves to ALERTED here, once).
create function wallet_close(
  p_id uuid, p_captured bigint, p_throttle interval, p_trace text, p_now timestamptz,
  out w wallets, out alert boolean
) language plpgsql as $$
declare h holds;
begin
  delete from holds where id = p_id returning * into h;
  if not found then
    raise exception 'hold % is not open', p_id using errcode = 'GW409';
  end if;
  if p_captured < 0 or p_captured > h.amount then
    raise exception 'capture % is outside the hold of %', p_captured, h.amount using errcode = 'GW001';
  end if;
  if p_captured > 0 then
    update wallets set settled = settled - p_captured, held = held - p_captured, entry_count = entry_count + 1
      where user_id = h.user_id returning * into w;
    perform ledger_add(w, 'capture', p_captured, 'capture:' || p_id, p_id, null, p_trace, p_now);
  end if;
  if p_captured < h.amount or h.amount = 0 then
    update wallets set held = held - (h.amount - p_captured), entry_count = entry_count + 1
      where user_id = h.user_id returning * into w;
    perform ledger_add(w, 'release', h.amount - p_captured, 'release:' || p_id, p_id, null, p_trace, p_now);
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
    update wallets set state = 'ALERTED', last_alert_at = p_now, rearmed_by_top_up = false
      where user_id = h.user_id returning * into w;
  end if;
end $$;

-- topUp and adjustment. The same operation id twice changes nothing and answers `repeated`.
-- Raises GW409 when an adjustment would leave less than what is held.
create function wallet_add(
  p_user uuid, p_kind text, p_amount bigint, p_operation text, p_note text, p_trace text, p_now timestamptz,
  out w wallets, out repeated boolean
) language plpgsql as $$
begin
  select * into w from wallets where user_id = p_user for update;
  repeated := exists (select 1 from wallet_entries where operation_id = p_operation);
  if repeated then return; end if;
  if w.settled + p_amount < w.held then
    raise exception 'the adjustment would leave less than what is held' using errcode = 'GW409';
  end if;
  update wallets set
      settled = settled + p_amount,
      entry_count = entry_count + 1,
      state = case when settled + p_amount >= trigger_threshold then 'NORMAL' else state end,
      rearmed_by_top_up = rearmed_by_top_up
        or (p_kind = 'top_up' and settled + p_amount >= trigger_threshold)
    where user_id = p_user returning * into w;
  perform ledger_add(w, p_kind, p_amount, p_operation, null, p_note, p_trace, p_now);
end $$;

-- A delivery id carries its creation time, so that its partition is found from the id alone.
create function time_sorted_id(p_prefix text, p_now timestamptz) returns text language sql as $$
  select p_prefix || lpad(to_hex(floor(extract(epoch from p_now) * 1000)::bigint), 12, '0')
    || right(replace(gen_random_uuid()::text, '-', ''), 20)
$$;

-- One event row, and one delivery per subscribed, enabled endpoint, due at once (contract 8).
-- Answers the endpoints to wake after the commit.
create function event_publish(
  p_id text, p_user uuid, p_type text, p_task uuid, p_body bytea, p_trace text, p_now timestamptz
) returns text[] language sql as $$
  insert into events (id, created_at, user_id, type, task_id, body, trace_id)
    values (p_id, p_now, p_user, p_type, p_task, p_body, p_trace);
  with targets as (
    select time_sorted_id('whd_', p_now) as id, e.id as endpoint_id
    from webhook_endpoints e
    where e.user_id = p_user and e.enabled and e.deleted_at is null and p_type = any (e.events)
  ), written as (
    insert into deliveries
      (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, task_id, status, updated_at)
    select id, p_now, p_user, endpoint_id, p_id, p_now, p_type, p_task, 'pending', p_now from targets
  ), queued as (
    insert into delivery_queue (id, created_at, endpoint_id, due_at)
    select id, p_now, endpoint_id, p_now from targets
    returning endpoint_id
  )
  select coalesce(array_agg(endpoint_id), '{}') from queued;
$$;

-- Accept (architecture, rule 1): idempotency record, task, run, event, deliveries, hold. The wallet last.
-- `replayed` is set when the idempotency key was used before; the row then is the first answer.
create function task_accept(
  p_task uuid, p_user uuid, p_api_key text, p_vendor text, p_model text, p_action text, p_kind text, p_body jsonb,
  p_sandbox boolean, p_price bigint, p_deadline timestamptz, p_trace text, p_now timestamptz,
  p_event text, p_event_body bytea, p_key text, p_request_hash bytea, p_answer text, p_key_since timestamptz,
  out replayed idempotency_keys, out balance bigint, out endpoints text[]
) language plpgsql as $$
declare w wallets;
begin
  if p_key is not null then
    insert into idempotency_keys as k (user_id, key, request_hash, status, body, cost, created_at)
      values (p_user, p_key, p_request_hash, 202, p_answer, p_price, p_now)
      on conflict (user_id, key) do update
        set request_hash = excluded.request_hash, status = 202, body = excluded.body, cost = excluded.cost,
            created_at = excluded.created_at
        where k.created_at < p_key_since;
    if not found then
      select * into replayed from idempotency_keys where user_id = p_user and key = p_key;
      return;
    end if;
  end if;
  insert into tasks
    (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id, created_at, updated_at)
  values
    (p_task, p_user, p_api_key, p_vendor, p_model, p_action, p_kind, 'pending', p_body, p_sandbox, p_price, p_trace, p_now, p_now);
  insert into runs (task_id, api_key_id, deadline_at) values (p_task, p_api_key, p_deadline);
  endpoints := event_publish(p_event, p_user, 'task.created', p_task, p_event_body, p_trace, p_now);
  w := wallet_hold(p_user, p_task, 'task', p_price, p_trace, p_now);
  balance := w.settled - w.held;
  if p_key is not null then
    update idempotency_keys k set balance = task_accept.balance where k.user_id = p_user and k.key = p_key;
  end if;
end $$;

-- Finish (architecture, rule 5): whoever deletes the run wins; with p_epoch only its owner can.
-- `won` is false, and nothing changed, when the task was finished or fenced before.
create function task_finish(
  p_task uuid, p_epoch integer, p_status text, p_result jsonb, p_error jsonb, p_captured bigint,
  p_event text, p_event_body bytea, p_throttle interval, p_now timestamptz,
  out won boolean, out user_id uuid, out alert boolean, out available bigint, out threshold bigint,
  out endpoints text[]
) language plpgsql as $$
declare t tasks; closed record;
begin
  delete from runs r where r.task_id = p_task and (p_epoch is null or r.epoch = p_epoch);
  won := found;
  if not won then return; end if;
  update tasks set status = p_status, result = p_result, error = p_error, captured = p_captured, updated_at = p_now
    where id = p_task and status in ('pending', 'processing') returning * into strict t;
  endpoints := event_publish(
    p_event, t.user_id, case p_status when 'completed' then 'task.succeeded' else 'task.failed' end,
    p_task, p_event_body, t.trace_id, p_now);
  select * into closed from wallet_close(p_task, p_captured, p_throttle, t.trace_id, p_now);
  user_id := t.user_id;
  alert := closed.alert;
  available := (closed.w).settled - (closed.w).held;
  threshold := (closed.w).trigger_threshold;
end $$;
