-- Slots: how many jobs of one line (an account, or one model of it) run at the vendor at once, counted
-- over all processes. A slot belongs to the run, so that whatever ends the task gives it back in the same
-- transaction, and nothing can leak. `slot` names the line; a run that does not hold it waits in it.
alter table runs add column slot text, add column slot_held boolean not null default false;
create index runs_slot on runs (slot, slot_held, task_id) where slot is not null;

-- Lets tasks join a line and gives free slots to those who came first, whoever runs them; task ids sort by
-- time. A task without an owner keeps its place and is passed over. Answers what has joined (held false)
-- and what this owner's tasks hold.
create function vendor_slots_take(
  p_line text, p_max integer, p_owner text, p_tasks uuid[], p_epochs integer[]
) returns table (task_id uuid, held boolean) language plpgsql
-- Hot tables are small in live rows and long in dead ones: found by their keys, never read through.
set enable_seqscan = off as $$
#variable_conflict use_column
declare free integer;
begin
  -- One at a time a line: each sees what the one before has given
  perform pg_advisory_xact_lock(hashtextextended('vendor_slots ' || p_line, 0));
  return query
    with joining as (
      select r.task_id from runs r
      join unnest(p_tasks, p_epochs) w(task, epoch) on r.task_id = w.task and r.epoch = w.epoch
      for update of r skip locked
    )
    update runs r set slot = p_line, slot_held = r.slot_held and r.slot is not distinct from p_line
      from joining j where r.task_id = j.task_id
      returning r.task_id, false;
  select p_max - count(*) into free from runs r where r.slot = p_line and r.slot_held;
  if free > 0 then
    -- Rows that somebody else is just ending are not waited for: no deadlock with task_finish_many
    update runs r set slot_held = true where r.task_id in (
      select n.task_id from runs n
      where n.slot = p_line and not n.slot_held and n.owner is not null
      order by n.task_id limit free
      for update skip locked
    );
  end if;
  return query
    select r.task_id, true from runs r where r.slot = p_line and r.slot_held and r.owner = p_owner
    order by r.task_id;
end $$;
