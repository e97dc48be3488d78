-- Limits of vendors, counted over all processes.

-- Leases p_count permits of a rate limit, p_spacing apart. Returns when the first of them is valid. Processes
-- lease shortly before use: permits far in the future were leased by a clock that was ahead, and are ignored.
create or replace function rate_leases_take(
  p_key text, p_count integer, p_spacing interval, p_now timestamptz, out first_at timestamptz
) language sql as $$
  insert into rate_leases as t (key, next_at) values (p_key, p_now + p_count * p_spacing)
  on conflict (key) do update set next_at = p_count * p_spacing + case
    when t.next_at > p_now + greatest(interval '1 minute', 100 * p_spacing) then p_now
    else greatest(t.next_at, p_now) end
  returning next_at - p_count * p_spacing
$$;

-- Queues tasks for a slot of a concurrency limit, and gives the free slots to the oldest tasks in the queue,
-- whoever runs them; task ids sort by time. A task without an owner keeps its place and is passed over. Returns
-- the tasks that were queued (`held` false) and those of this owner that hold a slot (ADR 0108).
create or replace function concurrency_slots_take(
  p_key text, p_max integer, p_owner text, p_tasks uuid[], p_epochs integer[]
) returns table (task_id uuid, held boolean) language plpgsql
-- Hot tables have few live rows and many dead ones: rows are found by index, never by a scan of the table.
set enable_seqscan = off as $$
#variable_conflict use_column
declare free integer;
begin
  -- One at a time for each limit, so that each transaction counts the slots that the one before has given.
  perform pg_advisory_xact_lock(hashtextextended('concurrency_slots ' || p_key, 0));
  return query
    with queued as (
      select r.task_id from runs r
      join unnest(p_tasks, p_epochs) w(task, epoch) on r.task_id = w.task and r.epoch = w.epoch
      for update of r skip locked
    )
    update runs r set slot_key = p_key, slot_held = r.slot_held and r.slot_key is not distinct from p_key
      from queued j where r.task_id = j.task_id
      returning r.task_id, false;
  select p_max - count(*) into free from runs r where r.slot_key = p_key and r.slot_held;
  if free > 0 then
    -- Skips rows that another transaction is ending, so that it cannot deadlock with task_finish_many.
    update runs r set slot_held = true where r.task_id in (
      select n.task_id from runs n
      where n.slot_key = p_key and not n.slot_held and n.owner is not null
      order by n.task_id limit free
      for update skip locked
    );
  end if;
  return query
    select r.task_id, true from runs r where r.slot_key = p_key and r.slot_held and r.owner = p_owner
    order by r.task_id;
end $$;
