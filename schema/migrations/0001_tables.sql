-- The truth. Amounts are micro-credits (bigint). Times come from the service's clock, never from now().

create table users (
  id uuid primary key,
  email text not null,
  name text,
  password_hash text,
  created_at timestamptz not null
);
create unique index users_email on users (lower(email));

create table api_keys (
  id text primary key,
  user_id uuid not null references users,
  key_hash bytea not null unique,
  preview text not null,
  name text not null,
  scopes text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index api_keys_user on api_keys (user_id, id desc);

-- Wallet: settled >= held >= 0 is stated to the database (contract 6).
create table wallets (
  user_id uuid primary key references users,
  settled bigint not null default 0,
  held bigint not null default 0,
  trigger_threshold bigint not null default 1000000000 check (trigger_threshold >= 0),
  state text not null default 'NORMAL' check (state in ('NORMAL', 'ALERTED')),
  last_alert_at timestamptz,
  -- A top-up re-arms the alert at once; any other recovery waits for the throttle window.
  rearmed_by_top_up boolean not null default true,
  entry_count bigint not null default 0,
  constraint wallets_held_not_negative check (held >= 0),
  constraint wallets_settled_covers_held check (settled >= held)
) with (fillfactor = 50);

-- Open holds only: closing one deletes it, so that it closes exactly once.
create table holds (
  id uuid primary key,
  user_id uuid not null,
  kind text not null check (kind in ('task', 'call')),
  amount bigint not null check (amount >= 0),
  created_at timestamptz not null
);

-- The ledger: numbered per user, never changed.
create table wallet_entries (
  user_id uuid not null,
  seq bigint not null check (seq > 0),
  kind text not null check (kind in ('top_up', 'adjustment', 'hold', 'capture', 'release')),
  amount bigint not null check (kind = 'adjustment' or amount >= 0),
  settled_after bigint not null,
  held_after bigint not null check (held_after >= 0 and settled_after >= held_after),
  operation_id text not null unique,
  subject_id uuid,
  note text,
  trace_id text,
  created_at timestamptz not null,
  primary key (user_id, seq)
);
create index wallet_entries_subject on wallet_entries (subject_id) where subject_id is not null;

create function forbid_change() returns trigger language plpgsql as $$
begin
  raise exception '% rows are never changed', tg_table_name using errcode = 'GW001';
end $$;
create trigger wallet_entries_immutable before update or delete on wallet_entries
  for each row execute function forbid_change();
create trigger wallet_entries_kept before truncate on wallet_entries
  for each statement execute function forbid_change();

create table tasks (
  id uuid primary key,
  user_id uuid not null,
  api_key_id text,
  vendor text not null,
  model text not null,
  action text not null,
  result_kind text not null check (result_kind in ('images', 'videos', 'audios')),
  status text not null check (status in ('pending', 'processing', 'completed', 'failed')),
  body jsonb not null,
  sandbox boolean not null,
  price bigint not null check (price >= 0),
  captured bigint check (captured >= 0 and captured <= price),
  result jsonb,
  error jsonb,
  trace_id text,
  created_at timestamptz not null,
  started_at timestamptz,
  updated_at timestamptz not null
);
create index tasks_user on tasks (user_id, id desc);

-- Hot: unfinished tasks only, so its cost does not grow with history.
create table runs (
  task_id uuid primary key,
  api_key_id text,
  epoch integer not null default 0,
  owner text,
  attempt integer not null default 0,
  deadline_at timestamptz not null
);
create index runs_owner on runs (owner);
create index runs_api_key on runs (api_key_id);

-- One row a paid submit, committed before the submit (contract 7).
create table vendor_attempts (
  task_id uuid not null,
  n integer not null,
  vendor text not null,
  account_id text not null,
  body_hash bytea not null,
  state text not null check (state in ('submitting', 'submitted', 'refused', 'ambiguous')),
  handle jsonb,
  failure text,
  started_at timestamptz not null,
  answered_at timestamptz,
  primary key (task_id, n)
);

create table idempotency_keys (
  user_id uuid not null,
  key text not null,
  request_hash bytea not null,
  status integer not null,
  body text not null,
  cost bigint,
  balance bigint,
  created_at timestamptz not null,
  primary key (user_id, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

create table webhook_endpoints (
  id text primary key,
  user_id uuid not null references users,
  url text not null,
  events text[] not null,
  description text,
  enabled boolean not null,
  secret bytea not null,
  secret_preview text not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create index webhook_endpoints_user on webhook_endpoints (user_id) where deleted_at is null;

-- Events, deliveries and attempts lie in day partitions; retention drops whole days.
create table events (
  id text not null,
  created_at timestamptz not null,
  user_id uuid not null,
  type text not null,
  task_id uuid,
  body bytea not null,
  trace_id text,
  primary key (id, created_at)
) partition by range (created_at);
create table events_default partition of events default;

create table deliveries (
  id text not null,
  created_at timestamptz not null,
  user_id uuid not null,
  endpoint_id text not null,
  event_id text not null,
  event_created_at timestamptz not null,
  event_type text not null,
  task_id uuid,
  status text not null check (status in ('pending', 'delivering', 'succeeded', 'failed', 'skipped')),
  attempts integer not null default 0,
  updated_at timestamptz not null,
  primary key (id, created_at)
) partition by range (created_at);
create table deliveries_default partition of deliveries default;
create index deliveries_user on deliveries (user_id, id desc);
create index deliveries_task on deliveries (task_id) where task_id is not null;

create table delivery_attempts (
  delivery_id text not null,
  seq integer not null,
  endpoint_id text not null,
  due_at timestamptz not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  status integer,
  failure text,
  detail text,
  answer text,
  remote_address text,
  primary key (delivery_id, seq, started_at)
) partition by range (started_at);
create table delivery_attempts_default partition of delivery_attempts default;
create index delivery_attempts_window on delivery_attempts (endpoint_id, started_at);

-- Hot: unfinished deliveries only. `owner` is set while an attempt is under way.
create table delivery_queue (
  id text primary key,
  created_at timestamptz not null,
  endpoint_id text not null,
  due_at timestamptz not null,
  attempt integer not null default 0,
  seq integer not null default 0,
  owner text,
  claimed_at timestamptz
);
create index delivery_queue_due on delivery_queue (due_at) where owner is null;
create index delivery_queue_endpoint on delivery_queue (endpoint_id, due_at) where owner is null;
create index delivery_queue_owner on delivery_queue (owner) where owner is not null;

-- Media kept by the service; the bytes lie in the artifact store.
create table artifacts (
  id text primary key,
  user_id uuid not null,
  task_id uuid not null,
  role text not null check (role in ('input', 'output')),
  mime text not null,
  bytes bigint not null,
  sha256 bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index artifacts_expiry on artifacts (expires_at);
create index artifacts_task on artifacts (task_id);

-- Each process of the service, alive while its heartbeat is young.
create table processes (
  id text primary key,
  started_at timestamptz not null,
  heartbeat_at timestamptz not null
);
