-- Lists by trace go by the period of 18.6 hours (2^26 ms) that the id of a task begins with, and then by four bytes of the
-- trace (ADR 0260): entries of new tasks lie on the pages of their period, where those of 0020 lay on any page. An operator
-- may have made the index before, while the service ran (the upgrade notes of 0.2.0); one that was not finished is made again.
do $$
begin
  if exists (select from pg_index where indexrelid = to_regclass('tasks_trace_period') and not indisvalid) then
    drop index tasks_trace_period;
  end if;
end $$;
create index if not exists tasks_trace_period
  on tasks ((('x' || left(id::text, 6))::bit(22)::integer), hashtext(trace_id)) where trace_id is not null;
drop index tasks_trace_hash;
