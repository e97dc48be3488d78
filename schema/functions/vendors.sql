-- Limits of vendors, enforced across all processes.

-- Takes slots of a concurrency limit for tasks in hand. Returns the tasks that got one. The others wait for a slot
-- without an owner, until their deadline at most (ADR 0108). A task that another transaction is ending is left out.
create or replace function slots_take(p_key text, p_max integer, p_account text, p_calls jsonb, p_now timestamptz)
returns table (task_id uuid, held boolean) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  -- One transaction at a time per limit, so that each counts the slots that the previous one gave.
  perform pg_advisory_xact_lock(hashtextextended('concurrency_slots ' || p_key, 0));
  with asking as (
    select r.task_id, c.inputs from jsonb_to_recordset(p_calls) as c (task uuid, epoch integer, inputs jsonb)
    join runs r on r.task_id = c.task and r.epoch = c.epoch and r.owner is not null
    for update of r skip locked
  )
  update runs r set slot_held = r.slot_held and r.slot_key is not distinct from p_key, slot_key = p_key,
    slot_max = p_max, account_id = p_account, inputs = coalesce(a.inputs, r.inputs)
  from asking a where r.task_id = a.task_id;
  perform slots_give(p_key, p_now);
  return query
  update runs r set
    owner = case when r.slot_held then r.owner end,
    due_at = case when r.slot_held then r.due_at else r.deadline_at end
  from jsonb_to_recordset(p_calls) as c (task uuid, epoch integer)
  where r.task_id = c.task and r.epoch = c.epoch and r.owner is not null and r.slot_key = p_key
  returning r.task_id, r.slot_held;
end $$;

-- Gives the free slots of a limit to the oldest tasks that wait for one, and makes these tasks due; task ids sort by
-- time. The newest waiting task determines the limit's size. The caller holds the lock of the limit. Returns the number
-- of tasks that got a slot.
create or replace function slots_give(p_key text, p_now timestamptz) returns integer language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  most integer;
  given integer;
begin
  select r.slot_max into most from runs r
    where r.slot_key = p_key and not r.slot_held order by r.task_id desc limit 1;
  if not found then return 0; end if;
  select most - count(*) into most from runs r where r.slot_key = p_key and r.slot_held;
  if most <= 0 then return 0; end if;
  -- Skips rows that another transaction is ending, so that this cannot deadlock with task_finish_many.
  update runs r set slot_held = true, due_at = case when r.owner is null then p_now else r.due_at end
    where r.task_id = any (array(
      select n.task_id from runs n where n.slot_key = p_key and not n.slot_held
      order by n.task_id limit most for update skip locked
    ));
  get diagnostics given = row_count;
  return given;
end $$;

-- Gives the free slots of all limits for which tasks wait. Returns the number of tasks that got one, and the number of
-- limits for which tasks wait. Skips a limit that another process is serving.
create or replace function slots_serve(p_now timestamptz, out given integer, out limits integer) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off as $$
declare waiting text := '';
begin
  given := 0;
  limits := 0;
  loop
    select r.slot_key into waiting from runs r
      where r.slot_key > waiting and not r.slot_held and r.slot_key is not null
      order by r.slot_key limit 1;
    exit when not found;
    limits := limits + 1;
    if pg_try_advisory_xact_lock(hashtextextended('concurrency_slots ' || waiting, 0)) then
      given := given + slots_give(waiting, p_now);
    end if;
  end loop;
end $$;

-- Makes tasks due that wait for a slot at these accounts, so that they can choose another account.
create or replace function slots_leave(p_accounts text[], p_now timestamptz) returns void language sql
set enable_seqscan = off as $$
  update runs r set due_at = p_now where r.task_id = any (array(
    select n.task_id from unnest(p_accounts) as a(id)
    join runs n on n.slot_key = a.id or starts_with(n.slot_key, a.id || '/')
    where n.slot_key is not null and not n.slot_held and n.owner is null and n.due_at > p_now
    for update of n skip locked
  ))
$$;

-- Records that a process has these accounts in its configuration. `p_sealed` is in hex. It overwrites the stored value
-- when a process starts, because an operator may replace the key behind a name.
create or replace function vendor_accounts_keep(p_ids text[], p_sealed text[], p_start boolean, p_now timestamptz)
returns void language sql as $$
  insert into vendor_accounts as a (id, sealed, configured_at)
  select x.id, decode(x.sealed, 'hex'), p_now from unnest(p_ids, p_sealed) as x(id, sealed) order by x.id
  on conflict (id) do update set
    sealed = case when p_start then excluded.sealed else a.sealed end,
    configured_at = greatest(a.configured_at, excluded.configured_at)
$$;

-- Deletes accounts that no process has had in its configuration since then and that no unfinished task needs.
create or replace function vendor_accounts_forget(p_since timestamptz) returns void language sql as $$
  delete from vendor_accounts a where a.configured_at < p_since and not exists (
    select from runs r join vendor_attempts v on v.task_id = r.task_id and v.n = r.attempt
    where split_part(v.account_id, '@', 2) = a.id
  )
$$;

-- Adds the charges of a transaction to the vendor accounts. Each connection has its own rows, because with shared rows
-- every settlement would wait for the previous one. Two connections that map to the same shard wait for each other.
create or replace function account_days_add(p_charged account_days[]) returns void language sql as $$
  insert into account_days as d (day, account_id, shard, credits)
  select c.day, c.account_id, pg_backend_pid() % 64, sum(c.credits)
  from unnest(p_charged) c where c.account_id <> '' and c.credits > 0
  group by c.day, c.account_id order by c.account_id, c.day
  on conflict (day, account_id, shard) do update set credits = d.credits + excluded.credits
$$;
