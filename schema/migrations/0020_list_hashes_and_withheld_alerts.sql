-- Balance alerts that the throttle withheld and that were reported at the end of its window. They have no entry in the
-- ledger: they stand behind the entry `seq`, the wallet's last one then (ADR 0232). Kept as long as the log.
create table withheld_alerts (
  user_id uuid not null,
  seq bigint not null,
  -- Of the event.
  created_at timestamptz not null,
  primary key (user_id, seq)
);
create index withheld_alerts_age on withheld_alerts (created_at);

-- Lists by key, model and trace (ADR 0165) go by eight bytes in place of up to 53 (ADR 0251). `tasks_search` compares the
-- columns too, so that two values of one hash are told apart. An operator may have made the indexes before, while the
-- service ran (the upgrade notes of 0.2.0); one that was not finished is made again.
do $$
declare half record;
begin
  for half in
    select i.indexrelid::regclass as name from pg_index i
    where not i.indisvalid and i.indexrelid in (
      to_regclass('tasks_key_hash'), to_regclass('tasks_model_hash'), to_regclass('tasks_trace_hash'))
  loop
    execute format('drop index %s', half.name);
  end loop;
end $$;
drop index tasks_api_key;
drop index tasks_model;
drop index tasks_trace;
create index if not exists tasks_key_hash on tasks (hashtextextended(api_key_id, 0), id desc);
create index if not exists tasks_model_hash on tasks (hashtextextended(model, uuid_hash_extended(user_id, 0)), id desc);
create index if not exists tasks_trace_hash on tasks (hashtextextended(trace_id, 0)) where trace_id is not null;
