-- A store that went back in time (docs/standbys.md): how a process notices it, and what is remembered of it.

-- Raised by each heartbeat of the process and by each batch of its paid submits. The process remembers the highest
-- number that was committed: one that is lower was lost with what was committed after it.
alter table processes add column advance bigint not null default 0;

-- The timeline of the server, which changes with each promotion, and since when.
create table store_timeline (
  only_row boolean primary key default true check (only_row),
  timeline integer not null,
  since timestamptz not null
);

-- One row for each time that the store was found to have gone back, or was said to have been restored.
create table store_marks (
  restored_at timestamptz primary key,
  -- The newest heartbeat that the store knew of: what was written later is lost.
  trusted_until timestamptz,
  -- A process, or a command.
  marked_by text not null,
  tasks_in_doubt integer not null
);

-- The store lost what it knew of the task's newest submit, if there was one.
alter table runs add column in_doubt boolean not null default false;
create index runs_in_doubt on runs (task_id) where in_doubt;

-- Their signatures have changed.
drop function if exists process_heartbeat(text, timestamptz, float8, text[], float8[]);
drop function if exists task_claim_known(text, integer, text, timestamptz, integer);
drop function if exists task_claim(text, integer, text, timestamptz);
drop function if exists task_attempts_begin(jsonb);
