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

-- As before, with one table more, and nothing waits for a delivery that is gone.
create or replace function partitions_keep(
  p_now timestamptz, p_days integer, p_keep_since timestamptz, out made integer, out dropped integer
) language plpgsql as $$
declare
  kept record;
  part record;
  today date := (p_now at time zone 'UTC')::date;
begin
  perform set_config('lock_timeout', '5s', true);
  made := 0;
  dropped := 0;
  for kept in
    select * from (values
      ('events', 'created_at'), ('deliveries', 'created_at'), ('delivery_attempts', 'started_at'),
      ('calls', 'created_at')
    ) as t (name, key)
  loop
    for n in 0..p_days loop
      if day_partition(kept.name, kept.key, today + n) then made := made + 1; end if;
    end loop;
    for part in
      select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = kept.name::regclass and c.relname ~ ('^' || kept.name || '_\d{8}$')
        and (to_date(right(c.relname::text, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= p_keep_since
    loop
      execute format('drop table %I', part.name);
      dropped := dropped + 1;
    end loop;
    execute format('delete from %I where %I < %L', kept.name || '_default', kept.key, p_keep_since);
  end loop;
  delete from delivery_queue q
    where q.created_at < p_keep_since
      and not exists (select 1 from deliveries d where d.id = q.id and d.created_at = q.created_at);
end $$;
