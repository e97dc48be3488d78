-- A waiting task is a row with a due time (ADR 0149). Nobody owns it; the process that claims it when it is due
-- takes its next step, and gives it up again until the step after that.
alter table runs
  -- When the next step is due. Of a task in hand it lies in the past, so that a claim that dies is due again.
  add column due_at timestamptz not null default 'epoch',
  -- Steps that are claimed together: the submits of a model, the polls of an account, or what one rate limit
  -- of a vendor counts.
  add column queue text not null default 'submits',
  -- The account of the next submit, while it waits for a slot or for a permit there.
  add column account_id text,
  -- The slots of `slot_key`, as they were configured when the task began to wait for one.
  add column slot_max integer,
  -- The artifacts of media that were fetched from the client's URLs, by JSON pointer.
  add column inputs jsonb,
  -- Every step changes an indexed column.
  set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
create index runs_due on runs (queue, due_at, task_id) where owner is null;
create index runs_deadline on runs (deadline_at) where owner is null;
drop index runs_callback_received;
drop index runs_owner;
create index runs_owner on runs (owner) where owner is not null;

-- The time between two permits of the limit; null: not known yet.
alter table rate_leases add column spacing interval;
