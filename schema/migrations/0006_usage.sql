-- What was charged, by day, key and model: written in the transactions that settle, so that a day's sum is that of
-- the captures in the ledger (docs/reference/usage.md#rollup). Every writer holds the wallet's lock.
create table usage_days (
  user_id uuid not null,
  -- The UTC day of the settlement.
  day date not null,
  -- Empty: a task without a key. With `vendor` and `model` empty too: captures whose receipts are gone.
  api_key_id text not null,
  vendor text not null,
  -- Empty: a route without a model.
  model text not null,
  sandbox boolean not null,
  -- Calls that were settled and tasks that were completed.
  requests bigint not null,
  input_tokens bigint not null,
  input_cached_tokens bigint not null,
  output_tokens bigint not null,
  images bigint not null,
  videos bigint not null,
  audios bigint not null,
  -- Of video.
  seconds bigint not null,
  credits bigint not null,
  primary key (user_id, day, api_key_id, vendor, model, sandbox)
-- A row is updated with every batch of its key: the new version lies beside the old one, and no index is written.
) with (fillfactor = 50);
create index usage_days_day on usage_days (day);

-- Lists filtered by key, model and trace (ADR 0165). The columns never change, so that these indexes are written once
-- a task.
create index tasks_api_key on tasks (api_key_id, id desc);
create index tasks_model on tasks (user_id, model, id desc);
create index tasks_trace on tasks (trace_id) where trace_id is not null;
-- Failed tasks: `error` is written once, where `status` changes twice.
create index tasks_failed on tasks (user_id, id desc) where error is not null;
-- Which parts of a day may have a trace. A call writes it only once a part is full.
create index calls_trace on calls using brin (trace_id text_bloom_ops) with (autosummarize = on);
-- Top-ups and adjustments, which are few among the entries of calls.
create index wallet_entries_operator on wallet_entries (user_id, seq desc) where subject_id is null;
