-- Receipts of passthrough calls lie in day partitions, as events, deliveries and attempts do: kept for
-- the same 30 days, dropped by the day (ADR 0102). The ledger stays.

alter table calls rename to calls_default;
alter table calls_default drop constraint calls_pkey;
drop index calls_user;
create table calls (like calls_default including defaults including constraints)
  partition by range (created_at);
alter table calls attach partition calls_default default;
alter table calls add primary key (id, created_at);
create index calls_user on calls (user_id, id);

-- As before, but one table at a time: whoever keeps several in one transaction holds the lock of one
-- and waits for that of the next, which a statement that serves deliveries may have, the other way round.
drop function partitions_keep(timestamptz, integer, timestamptz);
create function partitions_keep(
  p_table text, p_column text, p_now timestamptz, p_days integer, p_keep_since timestamptz,
  out made integer, out dropped integer
) language plpgsql as $$
declare
  part record;
  today date := (p_now at time zone 'UTC')::date;
begin
  perform set_config('lock_timeout', '5s', true);
  made := 0;
  dropped := 0;
  for n in 0..p_days loop
    if day_partition(p_table, p_column, today + n) then made := made + 1; end if;
  end loop;
  for part in
    select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = p_table::regclass and c.relname ~ ('^' || p_table || '_\d{8}$')
      and (to_date(right(c.relname::text, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= p_keep_since
  loop
    execute format('drop table %I', part.name);
    dropped := dropped + 1;
  end loop;
  execute format('delete from %I where %I < %L', p_table || '_default', p_column, p_keep_since);
end $$;

-- Nothing waits for a delivery that is gone.
create function delivery_queue_keep(p_keep_since timestamptz) returns void language sql as $$
  delete from delivery_queue q
  where q.created_at < p_keep_since
    and not exists (select 1 from deliveries d where d.id = q.id and d.created_at = q.created_at)
$$;
