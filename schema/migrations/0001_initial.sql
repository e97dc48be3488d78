-- The tables, with their constraints, indexes, triggers, partitions and views. The functions that the
-- service calls are in schema/functions.
--
-- Amounts are whole micro-credits (docs/reference/wallet.md#amounts). Times come from the clock of the
-- service: no default and no function reads now(). Ids of text, and ids of tasks and calls, sort by time.

-- Users and keys ---------------------------------------------------------------------------------------

create table users (
  id uuid primary key,
  email text not null,
  name text,
  -- Null until a password is set.
  password_hash text,
  created_at timestamptz not null
);
create unique index users_email on users (lower(email));

-- API keys, as hashes. A revoked key stays as a row.
create table api_keys (
  id text primary key,
  user_id uuid not null references users,
  -- SHA-256 of the key.
  key_hash bytea not null unique,
  -- The few characters of the key that may be shown.
  preview text not null,
  name text not null,
  scopes text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Written at most once a minute.
  last_used_at timestamptz
);
create index api_keys_user on api_keys (user_id, id desc);

-- A token bucket for each key, shared by all processes (ADR 0030). Unlogged: a request costs no flush to the
-- disk, and every bucket is full again after a crash of the server.
create unlogged table request_buckets (
  api_key_id text primary key,
  tokens double precision not null,
  -- Whether the latest request took a token.
  admitted boolean not null,
  -- The time up to which the bucket has been filled.
  filled_at timestamptz not null
) with (fillfactor = 50);

-- Responses to management requests with an Idempotency-Key
-- (docs/reference/http.md#idempotency-of-management-requests).
create table manage_idempotency_keys (
  -- The user, or the operator.
  caller text not null,
  key text not null,
  request_hash bytea not null,
  -- The request that claimed the key: no other request writes its response.
  claim uuid not null,
  -- Status and response are null while the request is in progress.
  status integer,
  -- Encrypted, because it may contain an API key or a signing secret.
  response bytea,
  created_at timestamptz not null,
  primary key (caller, key)
);
create index manage_idempotency_keys_age on manage_idempotency_keys (created_at);

-- Wallets ----------------------------------------------------------------------------------------------
-- The money verbs are in schema/functions/wallet.sql and calls.sql. What must always hold is stated here as
-- constraints and triggers (docs/reference/wallet.md#invariants).

-- One wallet a user. Available is settled - held.
create table wallets (
  user_id uuid primary key references users,
  settled bigint not null default 0,
  -- The sum of the wallet's open holds.
  held bigint not null default 0,
  -- The balance alert (docs/reference/wallet.md#balance-alert): sent when `settled` falls below the threshold.
  trigger_threshold bigint not null default 1000000000 check (trigger_threshold >= 0),
  state text not null default 'NORMAL' check (state in ('NORMAL', 'ALERTED')),
  last_alert_at timestamptz,
  -- A top-up re-arms the alert at once. Any other recovery waits for the end of the throttle interval.
  rearmed_by_top_up boolean not null default true,
  -- Number of the latest entry in wallet_entries.
  entry_count bigint not null default 0,
  constraint wallets_held_not_negative check (held >= 0),
  constraint wallets_settled_covers_held check (settled >= held),
  constraint wallets_entry_count_not_negative check (entry_count >= 0),
  constraint wallets_empty_before_first_entry check (entry_count > 0 or (settled = 0 and held = 0))
) with (fillfactor = 50);

-- Open holds only. Whoever closes a hold deletes its row, so that it is closed exactly once.
create table holds (
  -- The task's id, the call's id, or an id of its own for a reservation.
  id uuid primary key,
  -- A wallet; `holds_wallet_exists` checks it, because a foreign key looks once a row.
  user_id uuid not null,
  -- reservation: what a process holds for the next calls of one API key (ADR 0116).
  kind text not null constraint holds_kind_check check (kind in ('task', 'call', 'reservation')),
  amount bigint not null check (amount >= 0),
  created_at timestamptz not null,
  -- Of a call or a reservation: the process that runs it. Holds of a dead process are released.
  process_id text,
  -- Of a call: what its receipt says, for another process may write it. json, because it is written once and
  -- read once.
  call json,
  -- Of a reservation.
  api_key_id text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create unique index holds_reservations on holds (api_key_id, process_id) where kind = 'reservation';

-- The ledger (docs/reference/wallet.md#ledger). Rows are numbered for each wallet and never change.
create table wallet_entries (
  -- A wallet; checked by `wallet_entries_wallet_exists`.
  user_id uuid not null,
  seq bigint not null check (seq > 0),
  kind text not null check (kind in ('top_up', 'adjustment', 'hold', 'capture', 'release')),
  -- Only an adjustment may be negative.
  amount bigint not null,
  -- The wallet after this entry.
  settled_after bigint not null,
  held_after bigint not null,
  -- Of a hold, a capture or a release: kind and subject. Otherwise given by the operator.
  operation_id text not null,
  -- The hold: a task, a call or a reservation. A call that was paid from a reservation has a capture only.
  subject_id uuid,
  -- The operator's words. Of a capture paid from a reservation: the id of the reservation's hold.
  note text,
  trace_id text,
  created_at timestamptz not null,
  -- Of a top-up or an adjustment: the rest of the wallet after it, which a repeated request returns.
  state_after text,
  threshold_after bigint,
  primary key (user_id, seq),
  constraint wallet_entries_balances check (held_after >= 0 and settled_after >= held_after),
  constraint wallet_entries_amount check (
    case kind
      when 'adjustment' then amount <> 0
      when 'top_up' then amount > 0
      when 'capture' then amount > 0
      else amount >= 0
    end),
  -- With the two unique indexes: a subject is held, captured and released at most once each, and an operation of
  -- the operator is applied at most once.
  constraint wallet_entries_operation check (
    case when kind in ('hold', 'capture', 'release')
      then subject_id is not null and operation_id = kind || ':' || subject_id
      else subject_id is null and state_after is not null and threshold_after is not null
    end)
);
create unique index wallet_entries_operation_id on wallet_entries (operation_id) where subject_id is null;
create unique index wallet_entries_subject on wallet_entries (subject_id, kind) where subject_id is not null;

-- What the wallet audit has read of each wallet: the sums of its entries up to `seq`, so that the next round
-- reads new entries only (ADR 0061).
create table wallet_audits (
  user_id uuid primary key,
  seq bigint not null,
  settled bigint not null,
  held bigint not null,
  -- Every entry so far had the next number and continued the balances of the one before.
  chained boolean not null,
  -- The wallet differs from its ledger or its holds. The drift gauge counts these.
  drifting boolean not null,
  checked_at timestamptz not null
);
create index wallet_audits_drifting on wallet_audits (user_id) where drifting;

-- The latest complete round of the audit: without it, a drift of 0 proves nothing.
create table wallet_audit_rounds (
  only_row boolean primary key default true check (only_row),
  finished_at timestamptz not null,
  wallets bigint not null
);

-- Tasks ------------------------------------------------------------------------------------------------

-- Every task, finished ones too (docs/reference/tasks.md#states).
create table tasks (
  id uuid primary key,
  user_id uuid not null,
  api_key_id text,
  vendor text not null,
  model text not null,
  action text not null,
  -- The name of the array of results.
  result_kind text not null check (result_kind in ('images', 'videos', 'audios')),
  status text not null check (status in ('pending', 'processing', 'completed', 'failed')),
  -- The request, decoded; media as references to artifacts.
  body jsonb not null,
  sandbox boolean not null,
  -- What is held for the task.
  price bigint not null check (price >= 0),
  -- What was charged; null until the task ends.
  captured bigint check (captured >= 0 and captured <= price),
  -- An array of links, when completed.
  result jsonb,
  -- {code, title, detail}, when failed.
  error jsonb,
  trace_id text,
  created_at timestamptz not null,
  -- When the first attempt began.
  started_at timestamptz,
  updated_at timestamptz not null
);
create index tasks_user on tasks (user_id, id desc);

-- Unfinished tasks only, so that the cost of this table does not grow with history. Whoever ends the task
-- deletes its row (ARCHITECTURE.md#rules-of-safety).
create table runs (
  task_id uuid primary key,
  api_key_id text,
  -- Raised by each new owner. Every write of an owner names its epoch, so that an earlier owner changes nothing.
  epoch integer not null default 0,
  -- The process that runs the task; null: nobody does, and any process may take it.
  owner text,
  -- Number of the latest row in vendor_attempts.
  attempt integer not null default 0,
  deadline_at timestamptz not null,
  -- The concurrency limit that the task counts against: an account, or one model of an account (ADR 0108). With
  -- `slot_held` false the task waits for a slot. The slot is part of the run, so that it cannot leak.
  slot_key text,
  slot_held boolean not null default false,
  -- Another process received the vendor's callback: the owner is to poll the job now (ADR 0107).
  callback_received boolean not null default false
);
create index runs_owner on runs (owner);
create index runs_api_key on runs (api_key_id);
create index runs_slot on runs (slot_key, slot_held, task_id) where slot_key is not null;
create index runs_callback_received on runs (owner) where callback_received;

-- One row for each paid submit, committed before it is sent (docs/reference/vendors.md#paid-submit-protocol).
create table vendor_attempts (
  task_id uuid not null,
  n integer not null,
  vendor text not null,
  account_id text not null,
  -- SHA-256 of the body that is sent.
  body_hash bytea not null,
  -- ambiguous: the vendor may or may not have accepted the job, so that it is never submitted again.
  state text not null check (state in ('submitting', 'submitted', 'refused', 'ambiguous')),
  -- The vendor's ids of the job.
  handle jsonb,
  -- The class of the failure, a colon, and the vendor's message.
  failure text,
  started_at timestamptz not null,
  answered_at timestamptz,
  primary key (task_id, n)
);
-- Reconciliation reads the attempts of one account around one time. Rows are written in order of time.
create index vendor_attempts_started on vendor_attempts using brin (started_at);

-- Callbacks of vendors that were accepted, so that a replay is refused (ADR 0107).
create table vendor_callbacks (
  -- SHA-256 of what was signed.
  digest bytea primary key,
  -- From then on the callback is refused for its age.
  expires_at timestamptz not null
);
create index vendor_callbacks_expiry on vendor_callbacks (expires_at);

-- The rate limit of calls to a vendor, over all processes: processes lease permits (ADR 0082).
create table rate_leases (
  key text primary key,
  -- When the next free permit is valid.
  next_at timestamptz not null
);

-- Accounts, or models of an account, that no job is submitted to for now, because the vendor refused the service
-- itself.
create table vendor_faults (
  key text primary key,
  until timestamptz not null
);

-- The first response to a create with an Idempotency-Key (docs/reference/tasks.md#idempotency).
create table idempotency_keys (
  user_id uuid not null,
  key text not null,
  request_hash bytea not null,
  status integer not null,
  body text not null,
  -- Of the headers of that response.
  cost bigint,
  balance bigint,
  created_at timestamptz not null,
  primary key (user_id, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- Media that the service keeps; the bytes are in the artifact store (docs/reference/tasks.md#artifacts).
create table artifacts (
  id text primary key,
  user_id uuid not null,
  task_id uuid not null,
  role text not null check (role in ('input', 'output')),
  mime text not null,
  bytes bigint not null,
  -- Empty until all bytes are stored.
  sha256 bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index artifacts_expiry on artifacts (expires_at);
create index artifacts_task on artifacts (task_id);

-- Passthrough calls ------------------------------------------------------------------------------------

-- Receipts of metered calls, written once, when the call has ended (docs/reference/wallet.md#receipts-of-calls).
-- In day partitions, as the events, deliveries and attempts below: retention drops whole days (ADR 0053, ADR 0102).
create table calls (
  id uuid not null,
  user_id uuid not null,
  api_key_id text,
  vendor text not null,
  model text,
  route text not null,
  account_id text,
  -- lost: nobody knows what the call cost; nothing is charged.
  outcome text not null check (outcome in ('settled', 'released', 'lost')),
  -- Of the vendor's response; null when there was none.
  http_status integer,
  -- The most that the call could have cost.
  held bigint not null check (held >= 0),
  captured bigint not null check (captured >= 0 and captured <= held),
  usage jsonb,
  sandbox boolean not null,
  trace_id text,
  created_at timestamptz not null,
  ended_at timestamptz not null,
  -- A receipt is only looked for among those of its user (ADR 0120).
  primary key (user_id, id, created_at)
) partition by range (created_at);
create table calls_default partition of calls default;

-- Webhooks ---------------------------------------------------------------------------------------------

-- A deleted endpoint stays as a row, so that the delivery log can name it.
create table webhook_endpoints (
  id text primary key,
  user_id uuid not null references users,
  url text not null,
  events text[] not null,
  description text,
  enabled boolean not null,
  -- Both secrets are encrypted (docs/reference/webhooks.md#secrets-and-rotation).
  secret bytea not null,
  secret_preview text not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create index webhook_endpoints_user on webhook_endpoints (user_id) where deleted_at is null;

create table events (
  id text not null,
  created_at timestamptz not null,
  user_id uuid not null,
  type text not null,
  task_id uuid,
  -- The bytes that every delivery sends.
  body bytea not null,
  trace_id text,
  primary key (id, created_at)
) partition by range (created_at);
create table events_default partition of events default;

-- One event to one endpoint. The id contains created_at, so that the partition is found by the id alone.
create table deliveries (
  id text not null,
  created_at timestamptz not null,
  user_id uuid not null,
  endpoint_id text not null,
  event_id text not null,
  event_created_at timestamptz not null,
  event_type text not null,
  task_id uuid,
  -- An attempt in progress is not written here: read deliveries_and_claims (ADR 0114).
  status text not null check (status in ('pending', 'delivering', 'succeeded', 'failed', 'skipped')),
  -- Attempts that have ended, without lost ones.
  attempts integer not null default 0,
  updated_at timestamptz not null,
  primary key (id, created_at)
) partition by range (created_at);
-- A delivery is inserted and then updated once. With half of each page free the new version lies beside the old
-- one, and no index is written again. day_partition_create does the same.
create table deliveries_default partition of deliveries default with (fillfactor = 50);
create index deliveries_user on deliveries (user_id, id desc);
create index deliveries_task on deliveries (task_id) where task_id is not null;
create index deliveries_endpoint on deliveries (endpoint_id, id desc);

-- Attempts that have ended, each written once (ADR 0105). Attempts in progress are claims in delivery_queue.
create table delivery_attempts (
  delivery_id text not null,
  seq integer not null,
  endpoint_id text not null,
  due_at timestamptz not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  -- Of the response; null when there was none.
  status integer,
  -- The class of the failure; null: the attempt succeeded.
  failure text,
  detail text,
  -- The beginning of the response's body (docs/reference/webhooks.md#delivery-log).
  answer text,
  remote_address text,
  primary key (delivery_id, seq, started_at)
) partition by range (started_at);
create table delivery_attempts_default partition of delivery_attempts default;
create index delivery_attempts_window on delivery_attempts (endpoint_id, started_at);

-- Unfinished deliveries only. A row with an owner is an attempt in progress.
create table delivery_queue (
  id text primary key,
  created_at timestamptz not null,
  endpoint_id text not null,
  due_at timestamptz not null,
  -- Failed attempts of the current schedule: 0 to 5.
  attempt integer not null default 0,
  -- Number of the latest attempt.
  seq integer not null default 0,
  -- The process that claimed the delivery, and when.
  owner text,
  claimed_at timestamptz,
  -- Sent again by its user: goes out even while the endpoint is disabled (docs/reference/webhooks.md#redelivery).
  manual boolean not null default false
);
create index delivery_queue_due on delivery_queue (due_at) where owner is null;
create index delivery_queue_endpoint on delivery_queue (endpoint_id, due_at) where owner is null;
create index delivery_queue_claimed on delivery_queue (endpoint_id) where owner is not null;

-- Every attempt, also those in progress.
create view attempts_and_claims as
select delivery_id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, remote_address
from delivery_attempts
union all
select id, seq, endpoint_id, due_at, claimed_at, null, null, null, null, null, null
from delivery_queue where owner is not null;

-- Deliveries as they are shown: one with a claim is `delivering` since its claim (ADR 0114).
create view deliveries_and_claims as
select d.id, d.created_at, d.user_id, d.endpoint_id, d.event_id, d.event_created_at, d.event_type, d.task_id,
  case when q.owner is null then d.status else 'delivering' end as status, d.attempts,
  case when q.owner is null then d.updated_at else greatest(d.updated_at, q.claimed_at) end as updated_at,
  case when q.owner is null then q.due_at end as next_due_at
from deliveries d left join lateral (
  select c.owner, c.claimed_at, c.due_at from delivery_queue c where c.id = d.id offset 0
) q on true;

-- Processes --------------------------------------------------------------------------------------------

-- Each process of the service. It is alive while its heartbeat is young (ARCHITECTURE.md#rules-of-safety).
create table processes (
  id text primary key,
  started_at timestamptz not null,
  -- -infinity after a clean stop.
  heartbeat_at timestamptz not null,
  -- The clean stop. The row stays for a while, because the attempts of the process count in the rate limit of
  -- endpoints (ADR 0104).
  left_at timestamptz
);

-- Triggers ---------------------------------------------------------------------------------------------

-- Raises GW001: these rows are never changed, or never deleted.
create function forbid_change() returns trigger language plpgsql as $$
begin
  raise exception '% rows are never changed', tg_table_name using errcode = 'GW001';
end $$;

-- Raises GW001: a row never moves to another wallet.
create function forbid_wallet_change() returns trigger language plpgsql as $$
begin
  raise exception 'a row of % keeps its wallet', tg_table_name using errcode = 'GW001';
end $$;

-- Raises GW001 when an inserted row has no wallet. Looks once a statement, where a foreign key looks once a row
-- (an eighth of the cost of a call).
create function check_wallets_exist() returns trigger language plpgsql as $$
begin
  if exists (
    select 1 from (select distinct a.user_id from added a) a
    where not exists (select 1 from wallets w where w.user_id = a.user_id)
  ) then
    raise exception 'a row of % has no wallet', tg_table_name using errcode = 'GW001';
  end if;
  return null;
end $$;

-- Raises GW001 when a wallet differs from its latest ledger entry at the commit, whoever wrote it.
create function check_wallet_matches_ledger() returns trigger language plpgsql as $$
begin
  if new.entry_count > 0 and not exists (
    select 1 from wallet_entries e
    where e.user_id = new.user_id and e.seq = new.entry_count
      and e.settled_after = new.settled and e.held_after = new.held
  ) then
    raise exception 'wallet % differs from its ledger', new.user_id using errcode = 'GW001';
  end if;
  return null;
end $$;

create constraint trigger wallets_match_ledger
  after insert or update of settled, held, entry_count on wallets
  deferrable initially deferred for each row execute function check_wallet_matches_ledger();
create trigger wallets_never_deleted before delete or truncate on wallets
  for each statement execute function forbid_change();
create trigger wallets_keep_user before update of user_id on wallets
  for each row execute function forbid_wallet_change();
create trigger holds_wallet_exists after insert on holds
  referencing new table as added for each statement execute function check_wallets_exist();
create trigger holds_keep_wallet before update of user_id on holds
  for each row execute function forbid_wallet_change();
create trigger wallet_entries_wallet_exists after insert on wallet_entries
  referencing new table as added for each statement execute function check_wallets_exist();
create trigger wallet_entries_never_changed before update or delete on wallet_entries
  for each row execute function forbid_change();
create trigger wallet_entries_never_truncated before truncate on wallet_entries
  for each statement execute function forbid_change();

-- Types of the functions' parameters and results ---------------------------------------------------------

-- One row of task_accept_many. Of a replayed request, the columns from `request_hash` to `balance` are those of the
-- first response.
create type task_accept_result as (
  n integer,
  -- accepted, replayed, balance_too_low or too_many_running.
  outcome text,
  request_hash bytea,
  status integer,
  body text,
  cost bigint,
  balance bigint,
  -- The endpoints that have a new delivery.
  endpoints text[]
);

-- A charge that left a wallet below its threshold, and what was available after it.
create type threshold_crossing as (user_id uuid, available bigint, threshold bigint);

-- One row of calls_write: a call that was refused (`id`, `refused`), or a balance alert to publish in this
-- transaction (the other three).
create type calls_write_result as (
  id uuid,
  -- key: it is revoked, expired or without the scope by now. balance: it is too low.
  refused text,
  user_id uuid,
  available bigint,
  threshold bigint
);

-- One row of reservations_settle: what a reservation is now (the first five columns), or a balance alert to
-- publish in this transaction (`available`, `user_id`, `threshold`).
create type reservations_settle_result as (
  api_key_id text,
  granted bigint,
  available bigint,
  -- Whether the key may be used, and until when.
  alive boolean,
  expires_at timestamptz,
  user_id uuid,
  threshold bigint
);
