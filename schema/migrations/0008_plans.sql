-- Plans that do not depend on how many rows there were when they were made (ADR 0112).

-- Finish (architecture, rule 5): whoever deletes the run wins; with an epoch only its owner can.
-- A call without a row was fenced, or its task ended before: nothing changed.
create or replace function task_finish_many(p_calls jsonb) returns table (
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

-- Takes due deliveries of several endpoints at once, each endpoint's oldest first, and records their
-- attempts as begun (architecture, rule 6). The queue is empty most of the time: each row is found by
-- its key, in a statement of its own.
create or replace function delivery_claim(p_endpoints text[], p_limits integer[], p_owner text, p_now timestamptz)
returns table (
  id text, created_at timestamptz, attempt integer, seq integer, due_at timestamptz, started_at timestamptz,
  body bytea, endpoint_id text, url text, secret bytea, previous_secret bytea, previous_secret_until timestamptz
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  t record;
  q record;
  d record;
  ids text[] := '{}'; seqs integer[] := '{}'; endpoints text[] := '{}'; dues timestamptz[] := '{}';
begin
  started_at := p_now;
  for t in
    select e.*, w.most from unnest(p_endpoints, p_limits) as w (endpoint, most) cross join lateral (
      select e.id, e.url, e.secret, e.previous_secret, e.previous_secret_until, e.enabled
      from webhook_endpoints e where e.id = w.endpoint and e.deleted_at is null offset 0
    ) e
  loop
    endpoint_id := t.id;
    url := t.url;
    secret := t.secret;
    previous_secret := t.previous_secret;
    previous_secret_until := t.previous_secret_until;
    for q in
      -- A range of one and its order: only the endpoint's own index fits, never the one on due_at alone.
      select w.id, w.created_at, w.attempt, w.seq + 1 as seq, w.due_at from delivery_queue w
      where w.endpoint_id >= t.id and w.endpoint_id <= t.id and w.owner is null and w.due_at <= p_now
        and (t.enabled or w.manual)
      order by w.endpoint_id, w.due_at limit t.most for update skip locked
    loop
      update delivery_queue w set owner = p_owner, claimed_at = p_now, seq = q.seq where w.id = q.id;
      update deliveries o set status = 'delivering', updated_at = p_now
        where o.id = q.id and o.created_at = q.created_at
        returning o.event_id, o.event_created_at into d;
      select e.body into body from events e where e.id = d.event_id and e.created_at = d.event_created_at;
      continue when not found;
      id := q.id;
      created_at := q.created_at;
      attempt := q.attempt;
      seq := q.seq;
      due_at := q.due_at;
      ids := ids || q.id; seqs := seqs || q.seq; endpoints := endpoints || t.id; dues := dues || q.due_at;
      return next;
    end loop;
  end loop;
  insert into delivery_attempts (delivery_id, seq, endpoint_id, due_at, started_at)
    select a.id, a.seq, a.endpoint, a.due, p_now from unnest(ids, seqs, endpoints, dues) as a (id, seq, endpoint, due);
end $$;

-- Completes attempts: done, or due again. An endpoint that was disabled or deleted meanwhile gets no
-- further attempt: its delivery is skipped, unless it was sent by hand. A claim that was taken over
-- (its seq has moved on) changes nothing but the row of its own attempt; nor does a failure that is
-- told again, because the answer to the first time was lost (its attempt is counted already).
create or replace function delivery_record(
  p_ids text[], p_created timestamptz[], p_seqs integer[], p_started timestamptz[], p_ended timestamptz[],
  p_next timestamptz[], p_attempts integer[], p_statuses integer[], p_failures text[], p_details text[],
  p_answers text[], p_addresses text[]
) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
declare
  r record;
  q record;
  fate text;
  is_mine boolean;
begin
  for r in
    select * from unnest(
      p_ids, p_created, p_seqs, p_started, p_ended, p_next, p_attempts, p_statuses, p_failures, p_details,
      p_answers, p_addresses
    ) as x (
      id, created_at, seq, started_at, ended_at, next_at, attempt, status, failure, detail, answer, address)
    order by x.id
  loop
    if r.failure is null or r.next_at is null then
      fate := case when r.failure is null then 'succeeded' else 'failed' end;
      delete from delivery_queue w where w.id = r.id and w.seq = r.seq
        and (w.owner is not null or w.attempt < r.attempt or r.failure is null);
      is_mine := found;
    else
      select w.manual, w.endpoint_id into q from delivery_queue w where w.id = r.id and w.seq = r.seq
        and (w.owner is not null or w.attempt < r.attempt) for update;
      is_mine := found;
      if is_mine then
        select case when e.enabled or (q.manual and e.deleted_at is null) then 'pending' else 'skipped' end into fate
          from webhook_endpoints e where e.id = q.endpoint_id;
        if fate = 'pending' then
          update delivery_queue w set owner = null, due_at = r.next_at, attempt = r.attempt where w.id = r.id;
        else
          delete from delivery_queue w where w.id = r.id;
        end if;
      end if;
    end if;
    if is_mine then
      update deliveries d
        set status = fate, attempts = d.attempts + case when r.failure = 'lost' then 0 else 1 end, updated_at = r.ended_at
        where d.id = r.id and d.created_at = r.created_at;
    end if;
    update delivery_attempts a
      set ended_at = r.ended_at, status = r.status, failure = r.failure, detail = r.detail, answer = r.answer,
        remote_address = r.address
      where a.delivery_id = r.id and a.seq = r.seq and a.started_at = r.started_at;
  end loop;
end $$;
