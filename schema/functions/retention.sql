-- Day partitions, and the data deleted with them.

-- Creates the partition of one day, named <table>_YYYYMMDD. Returns false if it exists. Moves that day's rows from the
-- default partition into it; they are there if the service was not running when the day began. The table is locked
-- during the move, so that no update misses a moving row.
create or replace function day_partition_create(p_table text, p_column text, p_day date)
returns boolean language plpgsql as $$
declare
  part text := p_table || '_' || to_char(p_day, 'YYYYMMDD');
  since timestamptz := p_day::timestamp at time zone 'UTC';
  until timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
begin
  if to_regclass(part) is not null then return false; end if;
  execute format('lock table %I in access exclusive mode', p_table);
  execute format(
    'create table %I (like %I including defaults including constraints) with (fillfactor = %s)',
    part, p_table, case p_table when 'deliveries' then 50 else 100 end);
  execute format(
    'with moved as (delete from %I where %I >= %L and %I < %L returning *) insert into %I select * from moved',
    p_table || '_default', p_column, since, p_column, until, part);
  execute format(
    'alter table %I attach partition %I for values from (%L) to (%L)', p_table, part, since, until);
  return true;
end $$;

-- Creates the partitions from today to p_days ahead. Drops partitions that ended before p_keep_since, and the equally
-- old rows of the default partition. One table per transaction: a transaction that locked two tables would deadlock
-- with a statement that reads them in the other order.
create or replace function partitions_maintain(
  p_table text, p_column text, p_now timestamptz, p_days integer, p_keep_since timestamptz,
  out made integer, out dropped integer
) language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  part record;
  today date := (p_now at time zone 'UTC')::date;
begin
  perform set_config('lock_timeout', '5s', true);
  made := 0;
  dropped := 0;
  for n in 0..p_days loop
    if day_partition_create(p_table, p_column, today + n) then made := made + 1; end if;
  end loop;
  for part in
    -- By name, in the order of days, so that only earlier ones are read
    select c.relname::text as name
    from (
      select k.oid, k.relname from pg_class k
      where k.relname >= (p_table || '_00000000')::name
        and k.relname < (p_table || '_' || to_char(p_keep_since at time zone 'UTC', 'YYYYMMDD'))::name
        and k.relname ~ ('^' || p_table || '_\d{8}$') offset 0
    ) c
    where exists (select from pg_inherits i where i.inhrelid = c.oid and i.inhparent = p_table::regclass)
  loop
    execute format('drop table %I', part.name);
    dropped := dropped + 1;
  end loop;
  execute format('delete from %I where %I < %L', p_table || '_default', p_column, p_keep_since);
end $$;

-- Creates the partition of the month that starts on p_month, named <table>_YYYYMMDD. Returns false if it exists. Moves
-- that month's rows from the default partition into it, bypassing the trigger that prevents their deletion.
create or replace function month_partition_create(p_table text, p_column text, p_month date)
returns boolean language plpgsql as $$
declare
  part text := p_table || '_' || to_char(p_month, 'YYYYMMDD');
  since timestamptz := p_month::timestamp at time zone 'UTC';
  until timestamptz := (p_month + interval '1 month') at time zone 'UTC';
begin
  if to_regclass(part) is not null then return false; end if;
  execute format('lock table %I in access exclusive mode', p_table);
  execute format('create table %I (like %I including defaults including constraints)', part, p_table);
  execute format('alter table %I disable trigger user', p_table || '_default');
  execute format(
    'with moved as (delete from %I where %I >= %L and %I < %L returning *) insert into %I select * from moved',
    p_table || '_default', p_column, since, p_column, until, part);
  execute format('alter table %I enable trigger user', p_table || '_default');
  execute format(
    'alter table %I attach partition %I for values from (%L) to (%L)', p_table, part, since, until);
  execute format(
    'create trigger %I before truncate on %I for each statement execute function forbid_change()',
    p_table || '_never_truncated', part);
  return true;
end $$;

-- Creates the partitions of this month and the next. Drops partitions that ended before p_keep_since, and the equally
-- old rows of the default partition.
create or replace function month_partitions_maintain(
  p_table text, p_column text, p_now timestamptz, p_keep_since timestamptz, out made integer, out dropped integer
) language plpgsql as $$
declare
  part record;
  month date := date_trunc('month', p_now at time zone 'UTC')::date;
begin
  perform set_config('lock_timeout', '5s', true);
  made := 0;
  dropped := 0;
  for n in 0..1 loop
    if month_partition_create(p_table, p_column, (month + make_interval(months => n))::date) then
      made := made + 1;
    end if;
  end loop;
  for part in
    select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = p_table::regclass and c.relname ~ ('^' || p_table || '_\d{8}$')
      and (to_date(right(c.relname::text, 8), 'YYYYMMDD') + interval '1 month') at time zone 'UTC' <= p_keep_since
  loop
    execute format('drop table %I', part.name);
    dropped := dropped + 1;
  end loop;
  -- Does not lock the table if there is nothing to delete
  execute format('select true from %I where %I < %L limit 1', p_table || '_default', p_column, p_keep_since) into part;
  if part is not null then
    execute format('alter table %I disable trigger user', p_table || '_default');
    execute format('delete from %I where %I < %L', p_table || '_default', p_column, p_keep_since);
    execute format('alter table %I enable trigger user', p_table || '_default');
  end if;
end $$;

-- Deletes queued deliveries whose row in `deliveries` was dropped with its partition. Ids start with the time, so the
-- oldest rows are found by their key, and no further statement is planned if none is old (ADR 0112).
create or replace function delivery_queue_prune(p_keep_since timestamptz) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  first_kept constant text :=
    'whd_' || lpad(to_hex(floor(extract(epoch from p_keep_since) * 1000)::bigint + 1), 12, '0');
begin
  if not exists (select from delivery_queue q where q.id < first_kept and q.created_at < p_keep_since) then
    return;
  end if;
  delete from delivery_queue q
  where q.id < first_kept and q.created_at < p_keep_since
    and not exists (select from deliveries d where d.id = q.id and d.created_at = q.created_at offset 0);
end $$;

-- Finished tasks with ids below p_before, oldest first. Ids sort by creation time, and no task newer than the oldest
-- unfinished one is returned.
create or replace function tasks_finished_before(p_after uuid, p_before uuid, p_limit integer)
returns setof uuid language sql stable as $$
  select t.id from tasks t
  where t.id > p_after
    and t.id < least(p_before, (select r.task_id from runs r order by r.task_id limit 1))
  order by t.id limit p_limit
$$;

-- Deletes old tasks with their attempts, and batches without tasks. Returns the number of tasks.
create or replace function tasks_delete_before(p_before uuid, p_limit integer) returns integer language plpgsql as $$
declare ids uuid[];
begin
  ids := array(select tasks_finished_before('00000000-0000-0000-0000-000000000000', p_before, p_limit));
  delete from vendor_attempts where task_id = any (ids);
  delete from vendor_batches where task_id = any (ids);
  perform batch_requests_expire(ids);
  perform batch_receipts_delete(t.user_id, t.id) from tasks t where t.id = any (ids) and t.result_kind = 'batches';
  with deleted as (
    delete from tasks where id = any (ids) returning id, batch_id
  )
  delete from task_batches b
    where b.id = any (array(select d.batch_id from deleted d where d.batch_id is not null))
      and not exists (select from tasks t where t.batch_id = b.id and t.id <> all (ids));
  return cardinality(ids);
end $$;

-- Removes the bodies and the metadata of old tasks, starting at the mark. Returns the number of tasks. The tasks are
-- taken in order of id: first every second one (p_half 0) and then, in another transaction, the others (p_half 1),
-- which moves the mark. A page has room for new versions of half of its rows, and for more once these are committed, so
-- rows never move to another page and indexes are not written.
create or replace function task_bodies_remove(p_before uuid, p_limit integer, p_half integer)
returns integer language plpgsql as $$
declare
  ids uuid[];
  sandboxed uuid[];
  batches uuid[];
begin
  ids := array(select tasks_finished_before(
    coalesce((select task_id from retention_marks where name = 'bodies'), '00000000-0000-0000-0000-000000000000'),
    p_before, p_limit));
  if cardinality(ids) > 0 then
    perform batch_requests_expire(ids);
    with scrubbed as (
      update tasks set body = 'null', metadata = null
      where id = any (array(select i.id from unnest(ids) with ordinality as i (id, n) where p_half = 1 or i.n % 2 = 0))
        and (body <> 'null' or metadata is not null)
      returning id, sandbox, result_kind
    ) select array_agg(s.id) filter (where s.sandbox), array_agg(s.id) filter (where s.result_kind = 'batches')
      into sandboxed, batches from scrubbed s;
    if sandboxed is not null then perform sandbox_handles_erase(sandboxed); end if;
    if batches is not null then
      perform batch_names_erase(t.user_id, t.id) from tasks t where t.id = any (batches);
    end if;
    if p_half = 1 then
      insert into retention_marks as m (name, task_id) values ('bodies', ids[cardinality(ids)])
        on conflict (name) do update set task_id = greatest(m.task_id, excluded.task_id);
    end if;
  end if;
  return cardinality(ids);
end $$;

-- The simulator's handle contains the request. A vendor's handle contains only the vendor's ids, which are compared
-- with bills.
create or replace function sandbox_handles_erase(p_tasks uuid[]) returns void language sql as $$
  update vendor_attempts a set handle = null
  from tasks t
  where a.task_id = any (p_tasks) and t.id = a.task_id and t.sandbox and t.status in ('completed', 'failed')
    and a.handle is not null
$$;
