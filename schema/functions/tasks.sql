-- Tasks: acceptance and completion, many in one transaction (ADR 0060).
--
-- Each function takes a JSON array of calls that arrived together and returns one row for each, by its `n`.
-- Calls on one wallet are made in order of arrival under one lock. Wallets are locked in order of id, and
-- nothing that two transactions contend for is locked before its wallet, so that batches of several processes
-- cannot deadlock. A call that is refused changes nothing and does not affect the others. An exception undoes
-- the whole batch.

-- Accepts tasks: hold, task, run, event, deliveries and idempotency record, in one transaction
-- (ARCHITECTURE.md#rules-of-safety). `outcome`: accepted, replayed (the key was used before; the row contains
-- the first response), balance_too_low, too_many_running (the API key has `running_max` unfinished tasks),
-- too_many_running_of_user (the user's keys together have `user_running_max`). Exact, because all keys of a user
-- share the wallet's lock.
create or replace function task_accept_many(p_calls jsonb) returns setof task_accept_result language plpgsql as $$
declare
  c record;
  w wallets;
  a task_accept_result;
  known idempotency_keys;
begin
  for c in
    select * from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, user_id uuid, api_key text, vendor text, model text, action text, kind text, body jsonb,
      sandbox boolean, price bigint, deadline timestamptz, trace text, now timestamptz, event text,
      event_body bytea, running_max integer, user_running_max integer, catalog integer, key text, request_hash bytea, answer text, key_since timestamptz)
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
    -- The same task again: its first acceptance was committed, but the caller did not receive the result.
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
    if c.user_running_max > 0 and c.user_running_max <= (
      select count(*) from runs r
      where r.api_key_id = any (array(select k.id from api_keys k where k.user_id = c.user_id))
    ) then
      a.outcome := 'too_many_running_of_user';
      return next a;
      continue;
    end if;
    if w.user_id is null or w.settled - w.held < c.price then
      a.outcome := 'balance_too_low';
      return next a;
      continue;
    end if;
    w := wallet_hold(w, c.task, 'task', c.price, c.trace, c.now);
    a.balance := w.settled - w.held;
    insert into tasks
      (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id,
       created_at, updated_at, catalog_id)
    values
      (c.task, c.user_id, c.api_key, c.vendor, c.model, c.action, c.kind, 'pending', c.body, c.sandbox, c.price,
       c.trace, c.now, c.now, c.catalog);
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

-- Completes or fails tasks: whoever deletes the run wins (ARCHITECTURE.md#rules-of-safety). A call with an
-- epoch is the owner's, and does nothing when the task has a newer owner; a call without one is a cancellation.
-- A call without a row changed nothing: another owner has the task, or it had ended.
create or replace function task_finish_many(p_calls jsonb) returns table (
  n integer, user_id uuid, alert boolean, available bigint, threshold bigint, endpoints text[]
) language plpgsql as $$
declare
  c record;
  h holds;
  w wallets;
  settlement record;
begin
  for c in
    select x.*, t.user_id as owner, t.trace_id from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, epoch integer, status text, result jsonb, error jsonb, captured bigint,
      event text, event_body bytea, throttle double precision, now timestamptz)
    cross join lateral (
      -- One index lookup for each: a join would be planned once, for the number of tasks there were then (ADR 0112).
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
    select * into settlement
      from wallet_settle(w, h, c.captured, make_interval(secs => c.throttle), c.trace_id, c.now);
    w := settlement.w;
    alert := settlement.alert;
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
