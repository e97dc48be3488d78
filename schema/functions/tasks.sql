-- Tasks: acceptance and completion, many in one transaction (ADR 0060).
--
-- Each function takes a JSON array of calls that arrived together and returns one row per call, identified by `n`, its
-- index in the array. A loop decides each call; one statement then writes the effects of all accepted calls (ADR 0060).
-- Calls on one wallet are made in order of arrival under one lock. Wallets are locked in order of id, and nothing for
-- which two transactions contend is locked before its wallet, so that batches of several processes cannot deadlock. A
-- refused call changes nothing and does not affect the others. An exception rolls back the whole batch.

-- Accepts tasks: hold, task, run, event, deliveries and idempotency record, in one transaction
-- (ARCHITECTURE.md#rules-of-safety). `outcome` is accepted, replayed (the idempotency key was used before; the row
-- contains the first response), balance_too_low, too_many_running (the API key has `running_max` unfinished tasks),
-- too_many_running_of_user (the user's keys together have `user_running_max`), revoked, disabled, replaced, expired or
-- model (how the key or its secret of `rotation` has ended, or it does not allow the model: the request was admitted
-- before its body was read), file_gone (the file that a batch names was deleted or has expired meanwhile), or budget_
-- with the reset of the key's spend limit, if less than the price is left of it. The counts are exact, because all keys
-- of a user share the wallet's lock.
-- `models`: for an alias, all models that the key must allow. If the key has a spend limit, `cost` of an accepted task
-- and `balance` of a task refused by the limit are what is left of it. Unfinished tasks are counted by a plain index
-- scan, which marks the entries of ended tasks as dead for the next scan (ADR 0112).
-- `file_until`: when the file that the body of an accepted task names expires, which was stored for a short time.
-- Tasks created together are adjacent: the first has their number as `together`, and its outcome applies to all. The
-- others have `follows`, and get no row if the first is not accepted. The idempotency record of the first has the cost
-- of all.
create or replace function task_accept_many(p_calls jsonb) returns setof task_accept_result language plpgsql
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
declare
  c record;
  locked wallets[];
  place integer := 1;
  w wallets;
  a task_accept_result;
  known idempotency_keys;
  limits api_keys;
  budget key_budgets;
  holder uuid;
  running bigint;
  -- Totals of accepted calls that are not written yet.
  accepted task_accept_result[];
  entries bigint[];
  settled bigint[];
  held bigint[];
  epochs integer[];
  used_tasks uuid[];
  used_keys text[];
  -- Whether the last call without `follows` was refused.
  refused boolean;
  -- Tasks that were accepted by an earlier transaction.
  repeated uuid[];
  -- For requests for several tasks: their keys and users, and the number of tasks beyond the one that was admitted.
  debtor_keys text[];
  debtor_users uuid[];
  debts integer[];
begin
  select array_agg(l.u order by (l.u).user_id) into locked from (
    select u from wallets u
    where u.user_id = any (array(select x.user_id from jsonb_to_recordset(p_calls) as x (user_id uuid)))
    order by u.user_id for no key update
  ) l;
  -- Read once for all calls, under the locks. New tasks are at the end of the index, so it is descended once.
  select array_agg(e.subject_id) into repeated from wallet_entries e
    where e.subject_id = any (array(select x.task from jsonb_to_recordset(p_calls) as x (task uuid))) and e.kind = 'hold';
  for c in
    select * from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, user_id uuid, api_key text, model text, price bigint, deadline timestamptz,
      now timestamptz, running_max integer, user_running_max integer, owner text, queue text, key text,
      key_since timestamptz, models text[], together integer, follows boolean, webhook jsonb, file_until timestamptz,
      rotation integer)
    order by x.user_id, x.n
  loop
    continue when c.follows and refused;
    refused := true;
    c.together := coalesce(c.together, 1);
    if w.user_id is distinct from c.user_id then
      while locked[place].user_id < c.user_id loop
        place := place + 1;
      end loop;
      w := null;
      if locked[place].user_id = c.user_id then w := locked[place]; end if;
    end if;
    a := null;
    a.n := c.n;
    -- The same key or task occurs twice in a batch: the following statements treat the first as if it were committed.
    if c.key = any (used_keys) or c.task = any (used_tasks) then
      return query select * from tasks_write(p_calls, accepted, entries, settled, held, epochs);
      repeated := repeated || used_tasks;
      accepted := null;
      entries := null;
      settled := null;
      held := null;
      epochs := null;
      used_tasks := null;
      used_keys := null;
    end if;
    -- The task was accepted before: that transaction was committed, but the caller did not receive the result.
    if c.task = any (repeated) then
      select e.user_id, e.settled_after - e.held_after into holder, a.balance from wallet_entries e
        where e.subject_id = c.task and e.kind = 'hold';
      if holder = c.user_id then
        a.outcome := 'accepted';
        a.endpoints := '{}';
        refused := false;
        return next a;
        continue;
      end if;
    end if;
    limits := null;
    budget := null;
    -- Checked before the idempotency key, because a repeated request is authorized before it is replayed.
    if c.api_key is not null then
      select * into limits from api_keys o where o.id = c.api_key;
      a.outcome := case
        when limits.revoked_at is not null then 'revoked'
        when limits.disabled_at is not null then 'disabled'
        when c.rotation < limits.rotations - case when limits.previous_key_until > c.now then 1 else 0 end
          then 'replaced'
        when limits.expires_at <= c.now then 'expired'
        when not coalesce(c.models, array[c.model]) <@ limits.allowed_models then 'model'
      end;
      if a.outcome is not null then
        return next a;
        continue;
      end if;
    end if;
    if c.key is not null then
      -- By its key alone: while the table is empty, the planner might use any index for more conditions (ADR 0112).
      select * into known from idempotency_keys k where k.user_id = c.user_id and k.key = c.key;
      if known.created_at >= c.key_since then
        a := (c.n, 'replayed', known.request_hash, known.body, known.cost, known.balance, null);
        return next a;
        continue;
      end if;
    end if;
    if w.key_limits then
      -- The user's own limit replaces the configured one.
      c.user_running_max := coalesce((select u.concurrent_tasks from users u where u.id = c.user_id), c.user_running_max);
    end if;
    if w.key_limits and limits.id is not null then
      perform key_budgets_renew(array[c.api_key], c.now);
      c.running_max := coalesce(least(nullif(c.running_max, 0), limits.concurrent_tasks), 0);
      if limits.spend_limit is not null then
        select * into strict budget from key_budgets o where o.api_key_id = c.api_key;
        a.cost := greatest(0, limits.spend_limit - budget.spent - budget.held);
      end if;
    end if;
    -- Separate statements, because a condition with a query would be planned each time.
    if c.running_max > 0 then
      select count(*) into running from runs r where r.api_key_id = c.api_key;
      if running + c.together > c.running_max then
        a.outcome := 'too_many_running';
        return next a;
        continue;
      end if;
    end if;
    if c.user_running_max > 0 then
      select count(*) into running from runs r
        where r.api_key_id = any (array(select k.id from api_keys k where k.user_id = c.user_id));
      if running + c.together > c.user_running_max then
        a.outcome := 'too_many_running_of_user';
        return next a;
        continue;
      end if;
    end if;
    if c.price * c.together > a.cost then
      a.outcome := 'budget_' || limits.spend_reset;
      a.balance := a.cost;
      return next a;
      continue;
    end if;
    if w.user_id is null or w.settled - w.held < c.price * c.together then
      a.outcome := 'balance_too_low';
      return next a;
      continue;
    end if;
    if p_calls -> c.n ->> 'kind' = 'batches' then
      -- A deletion waits for this lock, and then finds the unfinished batch that reads the bytes.
      perform from files f
        where f.id = p_calls -> c.n -> 'body' ->> 'input_file_id' and f.user_id = c.user_id and f.deleted_at is null
          and f.expires_at > c.now
        for share;
      if not found then
        a.outcome := 'file_gone';
        return next a;
        continue;
      end if;
    end if;
    w.held := w.held + c.price;
    w.entry_count := w.entry_count + 1;
    a.balance := w.settled - w.held;
    if budget.epoch is not null then
      update key_budgets o set held = o.held + c.price where o.api_key_id = c.api_key;
      a.cost := a.cost - c.price;
    end if;
    -- Inserted at once, because the next calls count it.
    insert into runs (task_id, api_key_id, deadline_at, owner, epoch, queue, due_at, webhook)
      values (c.task, c.api_key, c.deadline, c.owner, case when c.owner is null then 0 else 1 end,
        coalesce(c.queue, 'submits'), c.now, c.webhook);
    if c.file_until is not null then
      update files f set expires_at = c.file_until
        where f.id = p_calls -> c.n -> 'body' ->> 'input_file_id' and f.user_id = c.user_id and f.deleted_at is null;
    end if;
    refused := false;
    if c.together > 1 then
      debtor_keys := debtor_keys || c.api_key;
      debtor_users := debtor_users || c.user_id;
      debts := debts || (c.together - 1);
    end if;
    accepted := accepted || a;
    entries := entries || w.entry_count;
    settled := settled || w.settled;
    held := held || w.held;
    epochs := epochs || budget.epoch;
    used_tasks := used_tasks || c.task;
    used_keys := used_keys || c.key;
  end loop;
  if accepted is not null then
    return query select * from tasks_write(p_calls, accepted, entries, settled, held, epochs);
  end if;
  if debts is not null then perform request_buckets_owe(debtor_keys, debtor_users, debts); end if;
end $$;

-- Takes requests from the buckets of keys and of their users in advance. The debt must be refilled before further
-- requests are admitted. All keys before all users, in the order of inference_admit.
create or replace function request_buckets_owe(p_keys text[], p_users uuid[], p_counts integer[]) returns void
language plpgsql as $$
begin
  update request_buckets b set tokens = b.tokens - o.owed
    from (select key, sum(n) as owed from unnest(p_keys, p_counts) as x (key, n) group by key) o
    where b.api_key_id = o.key;
  update request_buckets b set tokens = b.tokens - o.owed
    from (select u, sum(n) as owed from unnest(p_users, p_counts) as x (u, n) group by u) o
    where b.api_key_id = 'user:' || o.u;
end $$;

-- Writes the calls that task_accept_many accepted. One element of each array per call: its result, the number and the
-- balances of its entry, and the budget period of its key.
create or replace function tasks_write(
  p_calls jsonb, p_accepted task_accept_result[], p_entries bigint[], p_settled bigint[], p_held bigint[],
  p_epochs integer[]
) returns setof task_accept_result language plpgsql as $$
begin
  return query
  with c as materialized (
    select x.*, a.n, a.cost, a.balance, a.seq, a.settled, a.held, a.epoch
    from unnest(p_entries, p_settled, p_held, p_epochs, p_accepted) as a (seq, settled, held, epoch)
    cross join lateral jsonb_to_record(p_calls -> a.n) as x (
      task uuid, user_id uuid, api_key text, vendor text, model text, action text, kind text, body jsonb,
      sandbox boolean, price bigint, trace text, now timestamptz, event text, event_body bytea, catalog integer,
      key text, request_hash bytea, answer text, metadata text, candidates jsonb, candidate integer, batch text,
      together integer, webhook jsonb, webhook_secret bytea, webhook_preview text)
  ), opened as (
    insert into holds (id, user_id, kind, amount, created_at, api_key_id, budget_epoch)
    select c.task, c.user_id, 'task', c.price, c.now, case when c.epoch is not null then c.api_key end, c.epoch from c
  ), entered as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select c.user_id, c.seq, 'hold', c.price, c.settled, c.held, 'hold:' || c.task, c.task, c.trace, c.now
    from c
    returning user_id, seq, ctid::text as place
  ), paid as (
    update wallets w set held = l.held, entry_count = l.seq, last_entry = e.place
    from (select c.user_id, max(c.held) as held, max(c.seq) as seq from c group by c.user_id) l
    left join entered e on e.user_id = l.user_id and e.seq = l.seq
    where w.user_id = l.user_id and w.user_id = any (array(select c.user_id from c))
  ), made as (
    insert into tasks
      (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id,
       created_at, updated_at, catalog_id, metadata, candidates, candidate, batch_id)
    select c.task, c.user_id, c.api_key, c.vendor, c.model, c.action, c.kind, 'pending', c.body, c.sandbox, c.price,
      c.trace, c.now, c.now, c.catalog, c.metadata::json, c.candidates, c.candidate, c.batch
    from c
  ), remembered as (
    insert into idempotency_keys as k (user_id, key, request_hash, body, cost, balance, created_at)
    select c.user_id, c.key, c.request_hash, c.answer, c.price * t.n, c.balance - c.price * (t.n - 1), c.now
    from c cross join lateral (select coalesce(c.together, 1) as n) t where c.key is not null
    on conflict (user_id, key) do update
      set request_hash = excluded.request_hash, body = excluded.body, cost = excluded.cost,
          balance = excluded.balance, created_at = excluded.created_at
  ), signed as (
    -- The first webhook of a user's tasks creates the secret.
    insert into webhook_secrets (user_id, secret, secret_preview, updated_at)
    select distinct on (c.user_id) c.user_id, c.webhook_secret, c.webhook_preview, c.now from c
    where c.webhook is not null
    on conflict (user_id) do nothing
  )
  select c.n, 'accepted', null::bytea, null::text, c.cost, c.balance, e.endpoints
  from (
    select array_agg(c.event) as ids, array_agg(c.user_id) as users, array_agg('task.created'::text) as types,
      array_agg(c.task) as tasks, array_agg(c.event_body) as bodies, array_agg(c.trace) as traces,
      array_agg(c.now) as times, array_agg(c.model) as models, array_agg(c.metadata::jsonb) as metadata,
      array_agg(c.webhook) as hooks,
      array_agg(case when c.kind = 'batches' then c.body -> 'models' end) as lists
    from c
  ) p
  cross join lateral events_publish(
    p.ids, p.users, p.types, p.tasks, p.bodies, p.traces, p.times, p.models, p.metadata, p.hooks,
    p_lists => p.lists) e
  join c on c.task = e.task_id;
end $$;

-- Accepts the tasks of a batch, all or none (ADR 0292). Returns one row: that of the first refused task, or the totals
-- of all. Only the first call has the idempotency key, so that a repeated request is recognized before anything else is
-- checked. Each task counts in the request rates of the key and of its user. The tasks beyond the one admitted request
-- are a debt, which must be refilled first.
create or replace function task_batch_accept(p_batch text, p_calls jsonb) returns setof task_accept_result
language plpgsql as $$
declare
  results task_accept_result[];
  refused task_accept_result;
  first record;
  sums record;
begin
  select * into first from jsonb_to_record(p_calls -> 0) as x (
    user_id uuid, api_key text, key text, trace text, now timestamptz);
  begin
    select array_agg(a) into results from task_accept_many(p_calls) a;
    select * into refused from unnest(results) r where r.outcome <> 'accepted' order by r.n limit 1;
    if refused.n is not null then raise exception 'task % was refused', refused.n using errcode = 'GW409'; end if;
  exception when sqlstate 'GW409' then
    -- The tasks accepted before it were rolled back.
    return next refused;
    return;
  end;
  select min(r.balance) as balance, min(r.cost) as cost,
    coalesce((select array_agg(distinct e) from unnest(results) o, unnest(o.endpoints) e), '{}') as endpoints,
    (select sum(x.price) from jsonb_to_recordset(p_calls) as x (price bigint)) as held
    into sums from unnest(results) r;
  insert into task_batches (id, user_id, tasks, held, trace_id, created_at)
    values (p_batch, first.user_id, cardinality(results), sums.held, first.trace, first.now)
    on conflict do nothing;
  -- If none was found, the batch was committed before and the caller did not receive the result.
  if found then
    update idempotency_keys k set balance = sums.balance, cost = sums.held
      where k.user_id = first.user_id and k.key = first.key;
    perform request_buckets_owe(array[first.api_key], array[first.user_id], array[cardinality(results) - 1]);
  end if;
  return next (0, 'accepted', null, null, sums.cost, sums.balance, sums.endpoints)::task_accept_result;
end $$;

-- Completes or fails tasks. The caller that deletes the run wins (ARCHITECTURE.md#rules-of-safety). A call with an
-- epoch comes from the owner, and does nothing if the task has a newer owner. A call without an epoch is a
-- cancellation. A call without a result row changed nothing: another owner has the task, or it had ended before.
-- `batch`: the batch whose last task ended in this transaction.
create or replace function task_finish_many(p_calls jsonb) returns table (
  n integer, user_id uuid, alert boolean, available bigint, threshold bigint, endpoints text[], batch text
) language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  c record;
  h holds;
  w wallets;
  charge record;
  -- The ended tasks, for tasks_end.
  ended integer[];
  users uuid[];
  amounts bigint[];
  entries bigint[];
  settled bigint[];
  held bigint[];
  alerts boolean[];
  thresholds bigint[];
  hook jsonb;
  hooks jsonb[];
begin
  for c in
    select x.*, o.user_id as owner from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, epoch integer, captured bigint, throttle double precision, now timestamptz)
    left join (
      -- Finds the ids first, by key: a join would be planned only once, for the number of holds at that time (ADR
      -- 0112).
      select g.id, g.user_id from holds g
      where g.id = any (array(select k.task from jsonb_to_recordset(p_calls) as k (task uuid))) offset 0
    ) o on o.id = x.task
    order by o.user_id, x.n
  loop
    if w.user_id is distinct from c.owner then w := wallet_lock(c.owner); end if;
    delete from runs r where r.task_id = c.task and (c.epoch is null or r.epoch = c.epoch)
      returning r.webhook into hook;
    continue when not found;
    delete from holds where id = c.task returning * into strict h;
    charge := wallet_charge(w, h, c.captured, make_interval(secs => c.throttle), c.now);
    w := charge.w;
    ended := ended || c.n;
    users := users || c.owner;
    amounts := amounts || h.amount;
    entries := entries || w.entry_count;
    settled := settled || w.settled;
    held := held || w.held;
    alerts := alerts || charge.alert;
    thresholds := thresholds || w.trigger_threshold;
    hooks := array_append(hooks, hook);
  end loop;
  if ended is not null then
    return query select * from tasks_end(
      p_calls, ended, users, amounts, entries, settled, held, alerts, thresholds, hooks);
  end if;
end $$;

-- Writes the calls of task_finish_many that have ended their task. One element of each array per call: the held amount,
-- the wallet after its last entry, whether balance.low is due, and the task's webhook. Tables are read only by keys
-- that are known beforehand (ADR 0112), and each task once: other parts of the statement use the columns that its
-- update returns.
create or replace function tasks_end(
  p_calls jsonb, p_ended integer[], p_users uuid[], p_amounts bigint[], p_entries bigint[], p_settled bigint[],
  p_held bigint[], p_alerts boolean[], p_thresholds bigint[], p_hooks jsonb[]
) returns table (
  n integer, user_id uuid, alert boolean, available bigint, threshold bigint, endpoints text[], batch text
) language plpgsql as $$
#variable_conflict use_column
declare
  charged account_days[];
  failed uuid[];
begin
  return query
  with called as materialized (
    select x.*, e.*
    from unnest(p_ended, p_users, p_amounts, p_entries, p_settled, p_held, p_alerts, p_thresholds, p_hooks)
      as e (n, user_id, amount, seq, settled, held, alert, threshold, hook)
    cross join lateral jsonb_to_record(p_calls -> e.n) as x (
      task uuid, epoch integer, status text, result jsonb, error jsonb, captured bigint, usage jsonb, event text,
      event_body bytea, event_openai jsonb, now timestamptz)
  ), written as (
    update tasks t
      set status = c.status, result = c.result, error = c.error, captured = c.captured, usage = c.usage,
        updated_at = c.now
      from called c
      where t.id = c.task and t.id = any (array(select task from called)) and t.status in ('pending', 'processing')
    returning t.id, t.trace_id, t.api_key_id, t.sandbox, t.result_kind, t.batch_id, t.model as path_model, t.created_at,
      t.metadata::jsonb as metadata, case when t.result_kind = 'batches' then t.body -> 'models' end as models,
      -- For an alias, the task's current model.
      coalesce(t.candidates -> t.candidate ->> 'vendor', t.vendor) as vendor,
      coalesce(t.candidates -> t.candidate ->> 'model', t.model) as model,
      -- Seconds of each video. 5 if the body has no duration, as for the price.
      case when jsonb_typeof(t.body -> 'duration') = 'number' then (t.body ->> 'duration')::float8 else 5 end as seconds
  ), c as materialized (
    select c.*, w.trace_id, w.api_key_id, w.sandbox, w.result_kind, w.batch_id, w.vendor, w.model, w.seconds,
      w.path_model, w.metadata, w.models, w.created_at, c.status = 'completed' or c.captured > 0 as is_counted,
      jsonb_array_length(coalesce(c.result, '[]')) as made
    from called c left join written w on w.id = c.task
  ), entered as (
    insert into wallet_entries
      (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select c.user_id, e.seq, e.kind, e.amount, c.settled, e.held, e.kind || ':' || c.task, c.task, c.trace_id, c.now
    from c
    cross join lateral (values
      ('capture', c.captured, c.held + c.amount - c.captured,
        c.seq - case when c.captured < c.amount then 1 else 0 end),
      ('release', c.amount - c.captured, c.held, c.seq)
    ) as e (kind, amount, held, seq)
    where case e.kind when 'capture' then c.captured > 0 else c.captured < c.amount or c.amount = 0 end
    returning user_id, seq, ctid::text as place
  ), paid as (
    update wallets w set settled = l.settled, held = l.held, entry_count = l.seq, last_entry = e.place
    from (
      select c.user_id, min(c.settled) as settled, min(c.held) as held, max(c.seq) as seq from called c group by c.user_id
    ) l
    left join entered e on e.user_id = l.user_id and e.seq = l.seq
    where w.user_id = l.user_id and w.user_id = any (array(select user_id from called))
  ), batched as (
    update task_batches b
      set completed = b.completed + o.completed, failed = b.failed + o.failed, captured = b.captured + o.captured,
        released = b.released + o.released,
        ended_at = case when b.completed + b.failed + o.completed + o.failed = b.tasks then o.now end
      from (
        select c.batch_id, count(*) filter (where c.status = 'completed')::integer as completed,
          count(*) filter (where c.status = 'failed')::integer as failed, sum(c.captured)::bigint as captured,
          sum(c.amount - c.captured)::bigint as released, max(c.now) as now
        from c where c.batch_id is not null group by c.batch_id
      ) o
      where b.id = o.batch_id and b.id = any (array(select batch_id from c where batch_id is not null))
    returning b.id, b.ended_at
  ), cancelled as (
    -- The process may die during the submit; if it does not, it records the outcome itself
    update vendor_attempts v set state = 'ambiguous'
      where v.task_id = any (array(select task from called where epoch is null)) and v.state = 'submitting'
  ), used as (
    -- A batch with several models counts as one request and task, under the first model, and is charged under each of
    -- them.
    select usage_add(array_agg((
        c.user_id, c.now, coalesce(c.api_key_id, ''), c.vendor, coalesce(m.share ->> 'model', c.model), c.sandbox,
        (c.is_counted and m.is_first)::integer,
        coalesce((m.share ->> 'inputTokens')::float8, 0), coalesce((m.share ->> 'cachedInputTokens')::float8, 0),
        coalesce((m.share ->> 'outputTokens')::float8, 0),
        case c.result_kind when 'images' then c.made else 0 end, case c.result_kind when 'videos' then c.made else 0 end,
        case c.result_kind when 'audios' then c.made else 0 end,
        case c.result_kind when 'videos' then c.made * c.seconds else 0 end,
        coalesce((m.share ->> 'captured')::bigint, c.captured), (c.is_counted and m.is_first)::integer,
        (c.status = 'failed' and m.is_first)::integer,
        case when c.is_counted and m.is_first then durations_of(c.created_at, c.now) end)::usage_sum))
    from c cross join lateral usage_shares(case when c.is_counted then c.usage end) m
  )
  select c.n, c.user_id, c.alert, c.settled - c.held, c.threshold, e.endpoints, b.id
  from (
    select array_agg(c.event) as ids, array_agg(c.user_id) as users,
      array_agg(case c.status when 'completed' then 'task.succeeded' else 'task.failed' end) as types,
      array_agg(c.task) as tasks, array_agg(c.event_body) as bodies, array_agg(c.trace_id) as traces,
      array_agg(c.now) as times, array_agg(c.path_model) as models, array_agg(c.metadata) as metadata,
      array_agg(c.hook) as hooks, array_agg(c.event_openai) as openai, array_agg(c.models) as lists
    from c
  ) p
  cross join used
  cross join lateral events_publish(
    p.ids, p.users, p.types, p.tasks, p.bodies, p.traces, p.times, p.models, p.metadata, p.hooks,
    p_openai => p.openai, p_lists => p.lists) e
  join c on c.task = e.task_id
  left join batched b on b.id = c.batch_id and b.ended_at is not null;
  select array_agg(((c.now at time zone 'UTC')::date, v.account, 0, c.captured)::account_days) into charged
  from unnest(p_ended) as e (n)
  cross join lateral jsonb_to_record(p_calls -> e.n) as c (task uuid, captured bigint, now timestamptz)
  join (
    -- The account without its adapter; the simulator has none.
    select distinct on (a.task_id) a.task_id, split_part(a.account_id, '@', 2) as account from vendor_attempts a
    where a.task_id = any (array(
      select x.task from unnest(p_ended) as e (n)
      cross join lateral jsonb_to_record(p_calls -> e.n) as x (task uuid, captured bigint) where x.captured > 0))
    order by a.task_id, a.n desc
  ) v on v.task_id = c.task
  where c.captured > 0;
  if charged is not null then perform account_days_add(charged); end if;
  -- The media of a failed task are useless, so their removal is due now. Media that are already being removed are
  -- skipped.
  failed := array(
    select x.task from unnest(p_ended) as e (n)
    cross join lateral jsonb_to_record(p_calls -> e.n) as x (task uuid, status text) where x.status = 'failed');
  if cardinality(failed) > 0 then
    update artifacts a set expires_at = least(a.expires_at, a.created_at)
      where a.id = any (array(
        select o.id from artifacts o where o.task_id = any (failed) order by o.id for no key update skip locked));
    -- A batch that failed while its results were read is not charged, and keeps no receipts.
    perform batch_receipts_delete(t.user_id, t.id) from tasks t
      where t.id = any (failed) and t.result_kind = 'batches' and t.captured = 0;
  end if;
end $$;

-- The queues that have waiting tasks, each with the time of its next claim: when its first task is due and, under a
-- rate limit, a permit of the next second is free. The queue '' is for deadlines, because a task may wait for a permit
-- beyond its own deadline. Reads one index entry per queue, however many tasks wait.
create or replace function task_queues(p_now timestamptz)
returns table (queue text, due_at timestamptz)
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
  with recursive heads as (
    (select r.queue, r.due_at from runs r where r.owner is null
      order by r.queue, r.due_at limit 1)
    union all
    select n.queue, n.due_at from heads h cross join lateral (
      select r.queue, r.due_at from runs r
      where r.owner is null and r.queue > h.queue order by r.queue, r.due_at limit 1
    ) n
  )
  select h.queue, greatest(h.due_at, case
    when l.spacing is not null and l.next_at <= p_now + greatest(interval '1 minute', 100 * l.spacing)
    then l.next_at - interval '1 second' end)
  from heads h left join rate_leases l on l.key = h.queue
  union all
  (select '', r.deadline_at from runs r where r.owner is null order by r.deadline_at limit 1);
end $$;

-- Claims due tasks of a queue, oldest due time first. Under a rate limit, it claims as many as there are permits in the
-- next second, and leases these permits: `starts_at` is when each becomes valid. One process at a time claims from such
-- a queue. Permits far in the future were leased by a clock that was ahead, and are ignored. From the queue '' it
-- claims tasks whose deadline has passed. With p_share it claims only these tasks of the queue, from owners without a
-- heartbeat since p_alive_since.
create or replace function task_claim(
  p_queue text, p_limit integer, p_owner text, p_now timestamptz, p_share uuid[], p_alive_since timestamptz)
returns table (
  task_id uuid, epoch integer, deadline_at timestamptz, starts_at timestamptz, slot_held boolean,
  waited_for text, inputs jsonb, n integer, attempt_state text, account_id text, attempt_started_at timestamptz,
  handle jsonb, attempt_failure text, in_doubt boolean
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  lease rate_leases;
  first_at timestamptz := p_now;
  most integer := p_limit;
  claimed uuid[];
begin
  select * into lease from rate_leases l where l.key = p_queue and l.spacing is not null for update;
  if found then
    if lease.next_at > p_now and lease.next_at <= p_now + greatest(interval '1 minute', 100 * lease.spacing) then
      first_at := lease.next_at;
    end if;
    if first_at > p_now + interval '1 second' then return; end if;
    most := least(p_limit, 1 + floor(
      extract(epoch from p_now + interval '1 second' - first_at) / extract(epoch from lease.spacing))::integer);
  end if;
  with due as materialized (
    select r.task_id, r.due_at from runs r
    where p_share is null and p_queue > '' and r.queue = p_queue and r.owner is null and r.due_at <= p_now
    order by r.due_at, r.task_id limit most for update skip locked
  ), share as materialized (
    select r.task_id, r.due_at from runs r
    where r.task_id = any (p_share) and r.queue = p_queue and r.owner is not null
      and not exists (select from processes p where p.id = r.owner and p.heartbeat_at >= p_alive_since)
    order by r.due_at, r.task_id limit most for update of r skip locked
  ), late as materialized (
    select r.task_id, r.due_at from runs r
    where p_queue = '' and r.owner is null and r.deadline_at <= p_now
    order by r.deadline_at limit most for update skip locked
  ), owned as (
    update runs r set owner = p_owner, epoch = r.epoch + 1, callback_received = false
    from (table due union all table share union all table late) d where r.task_id = d.task_id
    returning r.task_id, d.due_at
  )
  select array_agg(o.task_id order by o.due_at, o.task_id) into claimed from owned o;
  if claimed is null then return; end if;
  if lease.key is not null then
    update rate_leases l set next_at = first_at + cardinality(claimed) * lease.spacing,
      minute = date_trunc('minute', p_now),
      used = cardinality(claimed) + case when l.minute = date_trunc('minute', p_now) then l.used else 0 end
    where l.key = p_queue;
  end if;
  -- A separate statement, so that it sees what earlier owners have written.
  return query
  select r.task_id, r.epoch, r.deadline_at,
    case when lease.key is null then p_now else first_at + (c.place - 1) * lease.spacing end,
    r.slot_held, r.account_id, r.inputs, a.n, a.state, a.account_id, a.started_at, a.handle, a.failure,
    r.in_doubt
  from unnest(claimed) with ordinality as c (task, place)
  cross join lateral (select * from runs where task_id = c.task offset 0) r
  left join lateral (
    select * from vendor_attempts v where v.task_id = r.task_id and v.n = r.attempt offset 0
  ) a on true
  order by c.place;
end $$;

-- Releases a task in hand to other processes. It then has no owner, and the raised epoch fences the previous owner. The
-- owner's name still excludes that process, which sends heartbeats while it stops and must not take a share of its own
-- tasks.
create or replace function task_hand_over(p_task uuid, p_epoch integer) returns void language sql as $$
  update runs r set owner = 'left ' || r.owner, epoch = r.epoch + 1
  where r.task_id = p_task and r.epoch = p_epoch and r.owner is not null
$$;

-- The tasks for which a process is responsible, among those that processes without a heartbeat since then had in hand
-- or handed over: those for which it comes first among the live processes by a hash of both. At most p_limit per
-- earlier owner. Steps from owner to owner, and reads neither tasks of live owners nor tasks without an owner.
create or replace function task_share(p_alive_since timestamptz, p_process text, p_limit integer)
returns table (queue text, tasks uuid[]) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  known text := '';
  alive text[];
begin
  select array_agg(p.id) into alive from processes p where p.heartbeat_at >= p_alive_since;
  loop
    select r.owner into known from runs r where r.owner is not null and r.owner > known order by r.owner limit 1;
    exit when not found;
    continue when known = any (alive);
    return query
      select o.queue, array_agg(o.task_id) from (
        select r.queue, r.task_id from runs r
        where r.owner = known and p_process = (
          select a.id from unnest(alive) as a (id) where right(known, length(a.id)) <> a.id
          order by hashtext(a.id || r.task_id), a.id limit 1)
        limit p_limit
      ) o group by o.queue;
  end loop;
end $$;

-- Frees at most p_limit tasks that processes without a heartbeat since then had in hand or handed over, and that no
-- process has taken with its share. Tasks that a process handed over, or had in hand when it left, are freed by the
-- second call: the first call renames their owner to 'late …' and notifies the other processes, which take their
-- shares. One process at a time. Steps from owner to owner, and reads neither tasks of live owners nor tasks without an
-- owner. Returns the number of tasks that are free now.
create or replace function task_orphans_release(
  p_alive_since timestamptz, p_limit integer, out released integer
) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  known text := '';
  alive text[];
  freed integer;
begin
  released := 0;
  if not pg_try_advisory_xact_lock(811006) then return; end if;
  select array_agg(p.id) into alive from processes p where p.heartbeat_at >= p_alive_since;
  loop
    select r.owner into known from runs r where r.owner is not null and r.owner > known order by r.owner limit 1;
    exit when not found or released >= p_limit;
    continue when known = any (alive);
    if known not like 'late %' and (known like 'left %'
      or exists (select from processes p where p.id = known and p.left_at is not null)) then
      update runs r set owner = 'late ' || replace(known, 'left ', '') where r.owner = known;
      perform pg_notify('gateway', '["", "left", ""]');
      continue;
    end if;
    update runs r set owner = null where r.task_id = any (array(
      select o.task_id from runs o where o.owner = known limit p_limit - released for update skip locked
    ));
    get diagnostics freed = row_count;
    released := released + freed;
  end loop;
end $$;

-- Begins paid submits. Each attempt is recorded before its POST, and its task becomes `processing`
-- (docs/reference/vendors.md#paid-submit-protocol). The permit of the task is used: a process that takes over the task
-- finds it in `queue`. The task gives up its slot, or its wait for one, at any other account. Begins nothing while
-- p_process may not trust the store (store_is_trusted); otherwise raises its advance. Returns the `n` of the tasks in
-- hand with this epoch, and that advance.
create or replace function task_attempts_begin(
  p_calls jsonb, p_process text, p_seen bigint, p_now timestamptz, p_settle_seconds float8
) returns table (n integer, advance float8) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  begun integer[];
  reached bigint;
begin
  if p_process is not null and not store_is_trusted(p_process, p_seen, p_now, p_settle_seconds) then return; end if;
  with c as materialized (
    select * from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, epoch integer, attempt integer, vendor text, account text, body_hash bytea,
      queue text, progress smallint, now timestamptz)
  ), fence as (
    update runs r set attempt = c.attempt, queue = c.queue, in_doubt = false,
      progress = case when c.progress is not null then greatest(r.progress, c.progress) end,
      slot_key = case when r.account_id = c.account then r.slot_key end,
      slot_held = r.slot_held and coalesce(r.account_id = c.account, false)
    from c where r.task_id = c.task and r.epoch = c.epoch and r.owner is not null
    returning c.*
  ), started as (
    update tasks t set status = 'processing', started_at = f.now, updated_at = f.now
    from fence f where t.id = f.task and t.status = 'pending'
  ), recorded as (
    insert into vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at)
    select f.task, f.attempt, f.vendor, f.account, f.body_hash, 'submitting', f.now from fence f
    on conflict (task_id, n) do update set state = excluded.state
  )
  select array_agg(f.n) into begun from fence f;
  -- Last, because the heartbeat waits for the lock of this row
  update processes p set advance = p.advance + 1 where p.id = p_process returning p.advance into reached;
  return query select u.n, coalesce(reached, 0)::float8 from unnest(begun) as u (n);
end $$;

-- Starts the search, at one account, for a submit that the store may have lost. Inserts an attempt that was not sent,
-- as its empty body_hash shows, dated at the task's creation. docs/standbys.md#tasks-in-doubt
create or replace function task_search_begin(
  p_task uuid, p_epoch integer, p_n integer, p_vendor text, p_account text
) returns table (task_id uuid) language sql as $$
  with fence as (
    update runs r set attempt = p_n where r.task_id = p_task and r.epoch = p_epoch and r.owner is not null and r.in_doubt
    returning r.task_id
  )
  insert into vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at)
  select t.id, p_n, p_vendor, p_account, '', 'submitting', t.created_at
  from fence f join tasks t on t.id = f.task_id
  on conflict (task_id, n) do nothing
  returning task_id
$$;

-- Ends steps of tasks. With a `state`, records the outcome of the attempt; a submit that was refused or is ambiguous
-- gives up its slot. With a `due`, the task waits until then in `queue`, or is due at once if its vendor has sent a
-- callback in the meantime; without one, its owner continues. Progress never goes down. With `candidates`, the task of an alias moves to the
-- model at `candidate`, without a slot; `candidates` says why the previous model was skipped. Returns the `n` of the
-- tasks whose run has this epoch.
create or replace function task_steps_end(p_calls jsonb) returns table (n integer) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  c record;
  written integer[];
begin
  for c in
    select distinct on (x.queue) x.queue, x.spacing from jsonb_to_recordset(p_calls) as x (
      queue text, spacing double precision)
    where x.spacing is not null order by x.queue
  loop
    if not exists (
      select from rate_leases l where l.key = c.queue and l.spacing = make_interval(secs => c.spacing)
    ) then
      insert into rate_leases as l (key, next_at, spacing)
        values (c.queue, 'epoch', make_interval(secs => c.spacing))
        on conflict (key) do update set spacing = excluded.spacing;
    end if;
  end loop;
  with c as materialized (
    select * from jsonb_to_recordset(p_calls) as x (
      n integer, task uuid, epoch integer, attempt integer, state text, handle jsonb, failure text,
      now timestamptz, due timestamptz, queue text, account text, inputs jsonb, candidates jsonb, candidate integer,
      progress smallint)
  ), ended as (
    update runs r set
      owner = case when c.due is null then r.owner end,
      due_at = case
        when c.due is null then r.due_at
        when r.callback_received then c.now
        else least(c.due, r.deadline_at) end,
      queue = case when c.due is null then r.queue else c.queue end,
      account_id = c.account,
      inputs = coalesce(c.inputs, r.inputs),
      progress = greatest(r.progress, c.progress),
      slot_key = case when c.state in ('refused', 'ambiguous') or c.candidates is not null then null else r.slot_key end,
      slot_held = r.slot_held and c.candidates is null and (c.state is null or c.state in ('submitting', 'submitted'))
    from c where r.task_id = c.task and r.epoch = c.epoch
    returning c.n, c.task, c.attempt, c.state, c.handle, c.failure, c.now, c.candidates, c.candidate
  ), passed as (
    update tasks t set candidates = e.candidates, candidate = e.candidate
    from ended e where t.id = e.task and e.candidates is not null
  ), recorded as (
    update vendor_attempts v
    set state = e.state, handle = e.handle, failure = e.failure, answered_at = e.now
    from ended e where v.task_id = e.task and v.n = e.attempt and e.state is not null
  )
  select coalesce(array_agg(e.n), '{}') into written from ended e;
  -- The task ended during its submit; the vendor's response is recorded anyway
  if cardinality(written) < jsonb_array_length(p_calls) then
    update vendor_attempts v
    set state = case c.state when 'submitting' then 'ambiguous' else c.state end,
      handle = c.handle, failure = c.failure, answered_at = c.now
    from jsonb_to_recordset(p_calls) as c (
      n integer, task uuid, attempt integer, state text, handle jsonb, failure text, now timestamptz)
    where v.task_id = c.task and v.n = c.attempt and v.state in ('submitting', 'ambiguous') and v.answered_at is null
      and c.state is not null and c.n <> all (written)
      and not exists (select from runs r where r.task_id = c.task);
  end if;
  return query select unnest(written);
end $$;

-- Settles submits whose outcome was unknown: of tasks that wait in p_queue without an owner, and of the task that is in
-- hand with this epoch, which is released. A `state` becomes the attempt's state; `ambiguous` gives up the slot. The
-- task continues in `queue`. Tasks that another transaction has locked are skipped.
create or replace function attempts_settle(p_queue text, p_task uuid, p_epoch integer, p_calls jsonb, p_now timestamptz)
returns table (task_id uuid) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  return query
  with c as materialized (
    select * from jsonb_to_recordset(p_calls) as x (
      task uuid, attempt integer, state text, handle jsonb, failure text, queue text, due timestamptz)
  ), fence as materialized (
    select c.* from c join runs r on r.task_id = c.task
    where case
      when r.task_id = p_task then r.epoch = p_epoch and r.owner is not null
      else r.owner is null and r.queue = p_queue and r.attempt = c.attempt end
    order by r.task_id for update of r skip locked
  ), waiting as (
    update runs r set
      owner = null,
      due_at = least(f.due, r.deadline_at),
      queue = f.queue,
      slot_key = case when f.state = 'ambiguous' then null else r.slot_key end,
      slot_held = r.slot_held and f.state is distinct from 'ambiguous'
    from fence f where r.task_id = f.task
    returning f.*
  ), recorded as (
    update vendor_attempts v
    set state = w.state, handle = w.handle, failure = w.failure,
      answered_at = case when w.state = 'ambiguous' then v.answered_at else p_now end
    from waiting w where v.task_id = w.task and v.n = w.attempt and w.state is not null and v.state = 'submitting'
  )
  select w.task from waiting w;
end $$;

-- The text in which a search looks for words, in lower case: the prompt, and names and values of the metadata.
create or replace function task_said(p_body jsonb, p_metadata json) returns text language plpgsql immutable as $$
begin
  if p_metadata is null then return lower(p_body ->> 'prompt'); end if;
  return lower(concat_ws(' ', p_body ->> 'prompt',
    (select string_agg(m.key || ' ' || m.value, ' ') from json_each_text(p_metadata) m)));
end $$;

-- A page of a user's tasks, or of all users' tasks if p_user is null, newest first, with ids from p_since on and below
-- p_before. Returns those that pass all non-null filters, at most p_limit, and reads at most p_scan. If it has read
-- that many before the page is full, one more row follows that has only the id of the last task read. It never reads
-- more, whatever the statistics and the order of rows (ADR 0165).
-- The order may only come from an index, except for the tasks of a trace. `= any` leaves only the indexes that have the
-- column in that order. Rows cost much and pages nothing, so that among several indexes the one that reads the fewest
-- rows is used. Keys, models and traces are found by their hash (ADR 0165) and then compared, because hashes may
-- collide. A trace is searched in each period of 18.6 hours, which is the start of an id, from the oldest task to the
-- newest (ADR 0165). With p_words, the prompt and metadata of a task must contain all words; every 1,000 characters
-- that are compared count as another row (ADR 0303).
create or replace function tasks_search(
  p_user uuid, p_ids uuid[], p_batch text, p_key text, p_trace text, p_model text, p_status text, p_vendor text,
  p_kind text, p_min bigint, p_max bigint, p_metadata jsonb, p_words text[], p_since uuid, p_before uuid,
  p_limit integer, p_scan integer
) returns setof tasks language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off
set random_page_cost = 0 set seq_page_cost = 0 set cpu_tuple_cost = 10 set cpu_index_tuple_cost = 10
set plan_cache_mode = force_generic_plan as $$
declare
  candidates refcursor;
  t tasks;
  oldest integer;
  newest integer;
  last uuid;
  said text;
  patterns text[];
  read integer := 0;
  passed integer := 0;
begin
  if p_words is not null then
    patterns := array(
      select '%' || replace(replace(replace(lower(w), '\', '\\'), '%', '\%'), '_', '\_') || '%' from unnest(p_words) w);
  end if;
  if p_ids is not null then
    open candidates no scroll for
      select * from tasks o where o.id = any (p_ids) and o.id >= p_since and o.id < p_before order by o.id desc;
  elsif p_batch is not null then
    open candidates no scroll for
      select * from tasks o
      where o.batch_id = any (array[p_batch]) and o.batch_id is not null and o.id >= p_since and o.id < p_before
      order by o.batch_id desc, o.id desc;
  elsif p_trace is not null then
    select ('x' || left(o.id::text, 6))::bit(22)::integer into oldest
      from tasks o where o.id >= p_since order by o.id limit 1;
    select ('x' || left(o.id::text, 6))::bit(22)::integer into newest
      from tasks o where o.id < p_before order by o.id desc limit 1;
    open candidates no scroll for
      select * from (
        select * from tasks
        where ('x' || left(id::text, 6))::bit(22)::integer = any (array(select generate_series(oldest, newest)))
          and hashtext(trace_id) = hashtext(p_trace) offset 0
      ) o
      where o.trace_id = p_trace and (p_user is null or o.user_id = p_user) and o.id >= p_since and o.id < p_before
      order by o.id desc;
  elsif p_key is not null then
    open candidates no scroll for
      select * from tasks o
      where hashtextextended(o.api_key_id, 0) = any (array[hashtextextended(p_key, 0)])
        and o.api_key_id = p_key and o.id >= p_since and o.id < p_before
      order by hashtextextended(o.api_key_id, 0), o.id desc;
  elsif p_user is null then
    open candidates no scroll for
      select * from tasks o where o.id >= p_since and o.id < p_before order by o.id desc;
  elsif p_model is not null then
    open candidates no scroll for
      select * from tasks o
      where hashtextextended(o.model, uuid_hash_extended(o.user_id, 0))
          = any (array[hashtextextended(p_model, uuid_hash_extended(p_user, 0))])
        and o.user_id = p_user and o.model = p_model and o.id >= p_since and o.id < p_before
      order by hashtextextended(o.model, uuid_hash_extended(o.user_id, 0)), o.id desc;
  elsif p_status = 'failed' then
    -- The index uses a column that is written once, not with every change of the status.
    open candidates no scroll for
      select * from tasks o
      where o.user_id = any (array[p_user]) and o.error is not null and o.id >= p_since and o.id < p_before
      order by o.user_id, o.id desc;
  else
    open candidates no scroll for
      select * from tasks o
      where o.user_id = any (array[p_user]) and o.id >= p_since and o.id < p_before
      order by o.user_id, o.id desc;
  end if;
  while read < p_scan and passed < p_limit loop
    fetch candidates into t;
    exit when not found;
    read := read + 1;
    last := t.id;
    -- The filter may name a key of another user, which must not select that user's tasks.
    if (p_user is null or t.user_id = p_user)
      and (p_model is null or t.model = p_model) and (p_status is null or t.status = p_status)
      and (p_vendor is null or t.vendor = p_vendor) and (p_key is null or t.api_key_id = p_key)
      and (p_kind is null or t.result_kind = p_kind)
      and (p_min is null or t.captured >= p_min) and (p_max is null or t.captured <= p_max)
      and (p_metadata is null or t.metadata::jsonb @> p_metadata)
    then
      if p_words is not null then
        said := task_said(t.body, t.metadata);
        read := read + coalesce(length(said), 0) / 1000;
        continue when said is null or not said like all (patterns);
      end if;
      passed := passed + 1;
      return next t;
    end if;
  end loop;
  -- Ids of other users' tasks are never returned.
  if read >= p_scan and passed < p_limit and (p_user is null or t.user_id = p_user) then
    t := null;
    t.id := last;
    return next t;
  end if;
end $$;
