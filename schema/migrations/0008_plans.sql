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
