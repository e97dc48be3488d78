-- What one process does for all of them at an interval: when it was begun last, and by whom (ADR 0202). Unlogged:
-- after a crash of the server everything is begun again.
create unlogged table duties (
  name text primary key,
  -- The beginning of the interval.
  begun_at timestamptz not null,
  process_id text not null
);
