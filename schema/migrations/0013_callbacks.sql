-- Callbacks of vendors that were taken: what was signed, as SHA-256, so that a replay is refused. Kept until
-- its timestamp is too old to be taken anyway (ADR 0107).
create table vendor_callbacks (
  digest bytea primary key,
  expires_at timestamptz not null
);
create index vendor_callbacks_expiry on vendor_callbacks (expires_at);

-- The vendor has called about this task at a process that does not run it: its owner is to look at the job.
alter table runs add column called boolean not null default false;
create index runs_called on runs (owner) where called;
