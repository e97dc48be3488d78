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
  created_at timestamptz not null,
  -- A disabled user's keys and sessions are refused.
  disabled_at timestamptz,
  -- Raised by each change of the password and by each disabling, both of which end the sessions of earlier epochs.
  session_epoch integer not null default 0,
  -- Issuer and subject of the first OpenID identity that signed in (ADR 0174).
  oidc_subject text,
  -- Limits that an operator set instead of the configured ones (ADR 0030). Null: the configured ones apply.
  rate_limit_per_minute integer check (rate_limit_per_minute > 0),
  concurrent_tasks integer check (concurrent_tasks > 0),
  -- Whether the user wants the requests and responses of calls kept (ADR 0309).
  keeps_calls boolean not null default false,
  -- When the user was deleted, and when all personal data were gone (docs/reference/privacy.md#deletion-of-a-user).
  deleted_at timestamptz,
  erased_at timestamptz,
  -- When the next pass of the erasure is due; null when there is none.
  erasure_due_at timestamptz
);
create unique index users_email on users (lower(email));
create unique index users_oidc_subject on users (oidc_subject) where oidc_subject is not null;
create index users_keeping_calls on users (id) where keeps_calls;
create index users_to_erase on users (erasure_due_at) where erasure_due_at is not null;

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
  last_used_at timestamptz,
  -- Set while the user is disabled: the key is refused like a revoked one.
  disabled_at timestamptz,
  -- Limits of this key (docs/reference/keys-and-limits.md#limits-of-a-key, ADR 0160). What the key may spend in a
  -- period of the UTC calendar. Null: limited only by the wallet.
  spend_limit bigint check (spend_limit >= 0),
  spend_reset text check (spend_reset in ('daily', 'weekly', 'monthly', 'never')),
  -- Null: all models.
  allowed_models text[],
  -- Null: only the configured limits apply.
  rate_limit_per_minute integer check (rate_limit_per_minute > 0),
  concurrent_tasks integer check (concurrent_tasks > 0),
  -- The user's rate limit, copied here so that an admission reads only one row.
  user_rate_limit_per_minute integer,
  -- The number of rotations, which identifies the key's secret (ADR 0190).
  rotations integer not null default 0,
  -- SHA-256 of the previous secret, and until when it is valid. Null: it is no longer valid.
  previous_key_hash bytea,
  previous_key_until timestamptz,
  -- The key that pays for the inference of a user's sessions. Nobody knows its secret (ADR 0172).
  is_console boolean not null default false,
  -- The value of `expires_at` for which key.expiring was published.
  expiring_told timestamptz,
  constraint api_keys_spend_limit check ((spend_limit is null) = (spend_reset is null))
);
create index api_keys_user on api_keys (user_id, id desc);
create unique index api_keys_previous_key_hash on api_keys (previous_key_hash) where previous_key_hash is not null;
create index api_keys_expiring on api_keys (expires_at) where expires_at is not null and revoked_at is null;
create unique index api_keys_console on api_keys (user_id) where is_console and revoked_at is null;

-- What a key has spent and holds in the current period of its spend limit. Written under the lock of the wallet that
-- pays. The row stays when the limit is removed, so that no epoch is used twice.
create table key_budgets (
  api_key_id text primary key references api_keys on delete cascade,
  -- Counts the periods. A hold names the one in which it began (`holds.budget_epoch`).
  epoch integer not null,
  -- When the period began: at its calendar start, or when the limit was set.
  since timestamptz not null,
  spent bigint not null check (spent >= 0),
  -- The sum of the open holds that began in the period.
  held bigint not null check (held >= 0)
) with (fillfactor = 50);

-- The vendor account that stores data created by a key's calls: stored responses, files, caches. A provider with one
-- account needs no row (ADR 0134).
create table account_affinities (
  api_key_id text not null references api_keys on delete cascade,
  provider text not null,
  account_id text not null,
  primary key (api_key_id, provider)
);

-- A token bucket per key, shared by all processes (ADR 0030). Unlogged, so that a request costs no disk flush; after a
-- crash of the server every bucket is full again.
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
  -- Identifies the request that claimed the key, which alone may write the response.
  claim uuid not null,
  -- Status and response are null while the request is in progress.
  status integer,
  -- Encrypted, because it may contain an API key or a signing secret.
  response bytea,
  created_at timestamptz not null,
  primary key (caller, key)
);
create index manage_idempotency_keys_age on manage_idempotency_keys (created_at);

-- Browsers that are signed in (docs/reference/sessions.md). `token_hash` is the SHA-256 of the cookie.
create table sessions (
  id text primary key,
  token_hash bytea not null unique,
  -- Null: the operator.
  user_id uuid references users on delete cascade,
  method text not null check (method in ('password', 'api_key', 'admin_token', 'link', 'oidc', 'passkey')),
  -- The key that was exchanged for the session, and its `rotations` at that time: the session ends with that secret.
  api_key_id text references api_keys on delete cascade,
  key_rotations integer,
  -- For a user: `session_epoch` at the sign-in.
  epoch integer,
  -- For the operator: a MAC of the operator's credentials (ADR 0172).
  operator_mac text,
  address text,
  created_at timestamptz not null,
  -- Written at most once a minute.
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  constraint sessions_of_user_or_operator check ((user_id is null) = (epoch is null)
    and (user_id is null) = (operator_mac is not null))
);
create index sessions_user on sessions (user_id, id desc);
create index sessions_expiry on sessions (expires_at);

-- One-time sign-in links, deleted when used. `token_hash` is the SHA-256 of the secret.
create table sign_in_links (
  token_hash bytea primary key,
  -- Null: the operator.
  user_id uuid references users on delete cascade,
  epoch integer,
  operator_mac text,
  expires_at timestamptz not null,
  constraint sign_in_links_of_user_or_operator check ((user_id is null) = (epoch is null)
    and (user_id is null) = (operator_mac is not null))
);
create index sign_in_links_expiry on sign_in_links (expires_at);

-- WebAuthn credentials of users (docs/reference/sessions.md#passkeys).
create table passkeys (
  id text primary key,
  user_id uuid not null references users on delete cascade,
  credential_id bytea not null unique,
  -- In COSE format.
  public_key bytea not null,
  -- The authenticator's signature counter; 0 if it does not count.
  sign_count bigint not null,
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_user on passkeys (user_id, id desc);

-- Used challenges, by SHA-256, until they expire.
create table passkey_challenges (
  hash bytea primary key,
  expires_at timestamptz not null
);
create index passkey_challenges_expiry on passkey_challenges (expires_at);

-- Wallets
-- ----------------------------------------------------------------------------------------------
-- The money verbs are in schema/functions/wallet.sql and calls.sql. The invariants are stated here
-- as constraints and triggers (docs/reference/wallet.md#invariants).

-- One wallet per user. The available balance is settled - held.
create table wallets (
  user_id uuid primary key references users,
  settled bigint not null default 0,
  -- The sum of the wallet's open holds.
  held bigint not null default 0,
  -- The balance alert (docs/reference/wallet.md#balance-alert): sent when `settled` falls below the threshold.
  trigger_threshold bigint not null default 1000000000 check (trigger_threshold >= 0),
  state text not null default 'NORMAL' check (state in ('NORMAL', 'ALERTED')),
  last_alert_at timestamptz,
  -- A top-up re-arms the alert at once. Any other recovery re-arms it at the end of the throttle interval.
  rearmed_by_top_up boolean not null default true,
  -- Whether a charge crossed the threshold while the throttle withheld its alert. The alert is reported when the window
  -- ends, if the balance is still below the threshold.
  alert_withheld boolean not null default false,
  -- Number of the latest entry in wallet_entries.
  entry_count bigint not null default 0,
  -- The ctid of that entry, so that the check at commit reads one page instead of all levels of an index (ADR 0061). A
  -- hint: if it is stale or absent, the entry is looked up by key. Text, because the driver has no decoder for tid.
  last_entry text,
  -- Whether a key of the user has, or had, a limit that the store enforces. Read with the lock of the wallet, so that
  -- keys without limits need no lookup.
  key_limits boolean not null default false,
  constraint wallets_held_not_negative check (held >= 0),
  constraint wallets_entry_count_not_negative check (entry_count >= 0),
  constraint wallets_empty_before_first_entry check (entry_count > 0 or (settled = 0 and held = 0))
) with (fillfactor = 50);
create index wallets_alert_withheld on wallets (last_alert_at) where alert_withheld;

-- Open holds only. Closing a hold deletes its row, so that it is closed exactly once.
create table holds (
  -- The task's id, the call's id, or the id of a reservation.
  id uuid primary key,
  -- A wallet; `holds_wallet_exists` checks it, because a foreign key does one lookup per row.
  user_id uuid not null,
  -- reservation: the amount that a process holds for future calls of one API key (ADR 0116).
  kind text not null constraint holds_kind_check check (kind in ('task', 'call', 'reservation')),
  amount bigint not null check (amount >= 0),
  created_at timestamptz not null,
  -- For a call or a reservation: the process that runs it. Holds of a dead process are released.
  process_id text,
  -- For a call: the contents of its receipt, because another process may have to write it. json, because it is written
  -- once and read once.
  call json,
  -- For a reservation: the key, and the catalog that prices its calls (ADR 0116).
  api_key_id text,
  catalog_id integer,
  -- The budget period of the key in which the hold counts; null if it counts in none.
  budget_epoch integer
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create unique index holds_reservations on holds (api_key_id, process_id) where kind = 'reservation';

-- The ledger (docs/reference/wallet.md#ledger). Rows are numbered for each wallet and never change.
create table wallet_entries (
  -- A wallet; checked by `wallet_entries_wallet_exists`.
  user_id uuid not null,
  seq bigint not null check (seq > 0),
  -- late_charge: for a call that ended after another process had released its hold (ADR 0270), or that cost more than
  -- it held (ADR 0306).
  kind text not null check (kind in ('top_up', 'adjustment', 'hold', 'capture', 'release', 'late_charge')),
  -- Only an adjustment may be negative.
  amount bigint not null,
  -- The wallet after this entry.
  settled_after bigint not null,
  held_after bigint not null,
  -- For a hold, a capture, a release or a late charge: built from kind, subject and `slice_to`. Otherwise chosen by the
  -- operator.
  operation_id text not null,
  -- The id of the hold: a task, a call or a reservation. A call that was paid from a reservation has only a capture.
  subject_id uuid,
  -- The operator's note. For a capture paid from a reservation: the id of the reservation's hold.
  note text,
  trace_id text,
  created_at timestamptz not null,
  -- For a further slice of a call's hold: the total that the call holds with it (ADR 0306).
  slice_to bigint,
  -- For a top-up or an adjustment: the state of the wallet after it, which a repeated request returns.
  state_after text,
  threshold_after bigint,
  primary key (user_id, seq),
  constraint wallet_entries_balances check (held_after >= 0),
  constraint wallet_entries_amount check (
    case kind
      when 'adjustment' then amount <> 0
      when 'top_up' then amount > 0
      when 'capture' then amount > 0
      when 'late_charge' then amount > 0
      else amount >= 0
    end),
  -- Together with the two unique indexes: a subject is held, captured, released and charged late at most once each
  -- (except that a call takes each further slice once), and an operation of the operator is applied at most once.
  constraint wallet_entries_operation check (
    case when kind in ('hold', 'capture', 'release', 'late_charge')
      then subject_id is not null and (slice_to is null or kind = 'hold')
        and operation_id = kind || ':' || subject_id || coalesce(':' || slice_to, '')
      else subject_id is null and slice_to is null and state_after is not null and threshold_after is not null
    end)
);
create unique index wallet_entries_operation_id on wallet_entries (operation_id) where subject_id is null;
create unique index wallet_entries_subject on wallet_entries (subject_id, kind, slice_to) nulls not distinct
  where subject_id is not null;
-- Top-ups and adjustments, which are few among the entries of calls.
create index wallet_entries_operator on wallet_entries (user_id, seq desc) where subject_id is null;

-- Balance alerts that the throttle withheld and that were reported at the end of its window. They have no ledger entry:
-- each follows the entry `seq`, the wallet's last one at that time (ADR 0232). Kept as long as the log.
create table withheld_alerts (
  user_id uuid not null,
  seq bigint not null,
  -- Time of the event.
  created_at timestamptz not null,
  primary key (user_id, seq)
);
create index withheld_alerts_age on withheld_alerts (created_at);

-- Charges by day, key and model. Written in the transactions that settle, so that a day's sum equals that of the
-- captures in the ledger (docs/reference/usage.md#rollup). Every writer holds the wallet's lock.
create table usage_days (
  user_id uuid not null,
  -- The UTC day of the settlement.
  day date not null,
  -- Empty for a task without a key. If `vendor` and `model` are also empty, the row contains captures whose receipts
  -- are gone.
  api_key_id text not null,
  vendor text not null,
  -- Empty for a route without a model.
  model text not null,
  sandbox boolean not null,
  -- Settled calls and completed tasks.
  requests bigint not null,
  input_tokens bigint not null,
  input_cached_tokens bigint not null,
  output_tokens bigint not null,
  images bigint not null,
  videos bigint not null,
  audios bigint not null,
  -- Seconds of video.
  seconds bigint not null,
  credits bigint not null,
  -- How many of `requests` were tasks.
  tasks bigint not null default 0,
  -- Failed tasks, and calls that were released or lost.
  errors bigint not null default 0,
  -- The durations of `requests` (docs/reference/usage.md#durations). Null if there are none.
  durations integer[],
  primary key (user_id, day, api_key_id, vendor, model, sandbox)
-- Each batch of a key updates its row. The new version fits on the same page, so no index is written.
) with (fillfactor = 50);
create index usage_days_day on usage_days (day);

-- The same by hour, for some weeks.
create table usage_hours (
  user_id uuid not null,
  -- When the UTC hour of the settlement began.
  hour timestamptz not null,
  api_key_id text not null,
  vendor text not null,
  model text not null,
  sandbox boolean not null,
  requests bigint not null,
  input_tokens bigint not null,
  input_cached_tokens bigint not null,
  output_tokens bigint not null,
  images bigint not null,
  videos bigint not null,
  audios bigint not null,
  seconds bigint not null,
  credits bigint not null,
  tasks bigint not null,
  errors bigint not null,
  durations integer[],
  primary key (user_id, hour, api_key_id, vendor, model, sandbox)
) with (fillfactor = 50);
create index usage_hours_hour on usage_hours (hour);

-- The progress of the wallet audit: the sums of each wallet's entries up to `seq`, so that the next round reads only
-- new entries (ADR 0061).
create table wallet_audits (
  user_id uuid primary key,
  seq bigint not null,
  settled bigint not null,
  held bigint not null,
  -- Whether every entry so far had the next number and continued the balances of the previous one.
  chained boolean not null,
  -- Whether the wallet differs from its ledger or its holds. The drift gauge counts these.
  drifting boolean not null,
  checked_at timestamptz not null
);
create index wallet_audits_drifting on wallet_audits (user_id) where drifting;

-- The latest complete round of the audit. Without it, a drift of 0 proves nothing.
create table wallet_audit_rounds (
  only_row boolean primary key default true check (only_row),
  finished_at timestamptz not null,
  wallets bigint not null,
  -- Spend limits with impossible counts (docs/reference/wallet.md#wallet-audit), and when they were
  -- checked.
  drifting_budgets integer not null default 0,
  budgets_checked_at timestamptz
);

-- Catalogs ---------------------------------------------------------------------------------------------

-- Catalogs by hash, with their full text: tasks, holds and receipts refer to the one that priced them
-- (docs/catalog.md#reload, ADR 0156). A catalog never changes and is never deleted.
create table catalogs (
  id integer primary key generated always as identity,
  -- SHA-256 of the text, in hex.
  hash text not null unique,
  text text not null,
  created_at timestamptz not null
);

-- The catalogs that all processes adopted, and when. The latest row applies.
create table catalog_adoptions (
  id integer primary key generated always as identity,
  catalog_id integer not null references catalogs,
  adopted_at timestamptz not null,
  -- The process that read the file.
  process_id text not null
);
create index catalog_adoptions_time on catalog_adoptions (adopted_at, id);

-- Tasks ------------------------------------------------------------------------------------------------

-- Every task, including finished ones (docs/reference/tasks.md#states).
create table tasks (
  id uuid primary key,
  user_id uuid not null,
  api_key_id text,
  vendor text not null,
  model text not null,
  action text not null,
  -- The name of the result array.
  result_kind text not null check (
    result_kind in ('images', 'videos', 'audios', 'meshes', 'documents', 'responses', 'batches')
  ),
  status text not null check (status in ('pending', 'processing', 'completed', 'failed')),
  -- The decoded request, with references to artifacts instead of media.
  body jsonb not null,
  sandbox boolean not null,
  -- The amount held for the task.
  price bigint not null check (price >= 0),
  -- The amount charged; null until the task ends.
  captured bigint check (captured >= 0 and captured <= price),
  -- An array of links, when completed.
  result jsonb,
  -- For a response: the vendor's figures or the gateway's estimate, for which it was charged.
  usage jsonb,
  -- {code, title, detail}, when failed.
  error jsonb,
  trace_id text,
  -- The catalog that priced the task.
  catalog_id integer,
  -- For an alias (docs/reference/aliases.md): the models that may run the task, in the order in which they are tried,
  -- each with its price and the reason why it was skipped, and the index of the current model. `vendor` and `model` are
  -- those of the request. Null if the request named a model.
  candidates jsonb,
  candidate integer,
  -- The client's metadata (docs/reference/tasks.md#metadata). json, because it is returned as it was sent, with its
  -- members in order. Null if none were sent.
  metadata json,
  created_at timestamptz not null,
  -- When the first attempt began.
  started_at timestamptz,
  updated_at timestamptz not null,
  -- When the client deleted a video (docs/reference/shapes.md#videos) or a batch. Its media or files are gone, and
  -- lists in its vendor's format no longer contain it. The task and its charge remain.
  deleted_at timestamptz,
  -- The batch that created it (docs/reference/batches.md).
  batch_id text
-- Half of each page is left free for the updates of its tasks (begun, ended, body removed), so that they write no index
-- (ADR 0112).
) with (fillfactor = 50);
create index tasks_user on tasks (user_id, id desc);
create index tasks_batch on tasks (batch_id, id) where batch_id is not null;
-- Failed tasks. Uses `error`, which is written once, because `status` changes twice.
create index tasks_failed on tasks (user_id, id desc) where error is not null;
create index tasks_videos on tasks (user_id, id desc) where result_kind = 'videos' and deleted_at is null;
create index tasks_vendor_batches on tasks (user_id, id desc) where result_kind = 'batches' and deleted_at is null;
-- Lists by key and model use eight bytes instead of up to 53 (ADR 0165). `tasks_search` compares the columns too,
-- because two values may have the same hash.
create index tasks_key_hash on tasks (hashtextextended(api_key_id, 0), id desc);
create index tasks_model_hash on tasks (hashtextextended(model, uuid_hash_extended(user_id, 0)), id desc);
-- Lists by trace use the period of 18.6 hours (2^26 ms) with which a task's id begins, then four bytes of the trace, so
-- that entries of new tasks are on the pages of their period (ADR 0165).
create index tasks_trace_period
  on tasks ((('x' || left(id::text, 6))::bit(22)::integer), hashtext(trace_id)) where trace_id is not null;

-- Tasks that one request created together (docs/reference/batches.md).
create table task_batches (
  id text primary key,
  user_id uuid not null,
  tasks integer not null check (tasks > 0),
  -- Totals of its tasks: the number of each outcome, the amount held, and how it was settled. Each transaction that
  -- ends tasks adds to them, so that reads need not sum up. The transaction that ends the last task publishes
  -- task_batch.completed.
  completed integer not null default 0,
  failed integer not null default 0,
  held bigint not null,
  captured bigint not null default 0,
  released bigint not null default 0,
  trace_id text,
  created_at timestamptz not null,
  -- When its last task ended.
  ended_at timestamptz,
  constraint task_batches_counts check (completed + failed <= tasks and captured + released <= held),
  constraint task_batches_end check ((completed + failed = tasks) = (ended_at is not null))
);
create index task_batches_user on task_batches (user_id, id desc);

-- Batches of requests to a language model, each of which a vendor runs for one task (docs/reference/vendor-batches.md),
-- with what the vendor last reported. The first poll, or a cancellation, writes the row.
create table vendor_batches (
  task_id uuid primary key,
  status text not null check (status in (
    'validating', 'in_progress', 'finalizing', 'cancelling', 'completed', 'expired', 'cancelled')),
  completed integer not null default 0,
  failed integer not null default 0,
  cancelling_at timestamptz,
  -- The user's files with the responses, and with the requests that got none.
  output_file text,
  error_file text
);

-- The charge of each request of a batch. Receipts are written while the results are read, before the batch ends; their
-- sum is then captured (ADR 0300).
create table batch_receipts (
  user_id uuid not null,
  -- The task, a dot, and the first 20 hex digits of the SHA-256 of custom_id.
  id text collate "C" not null,
  -- The client's name of the request. Null if it was erased.
  custom_id text,
  -- The model as the request names it.
  model text not null,
  -- released: there was no successful response.
  outcome text not null check (outcome in ('settled', 'released')),
  http_status integer,
  captured bigint not null check (captured >= 0),
  usage jsonb,
  -- The vendor's id of the request.
  request_id text,
  created_at timestamptz not null,
  primary key (user_id, id)
);

-- Unfinished tasks only, so that the cost of this table does not grow with history. Ending the task deletes its row
-- (ARCHITECTURE.md#rules-of-safety).
create table runs (
  task_id uuid primary key,
  api_key_id text,
  -- Raised by each new owner. Every write of an owner names its epoch, so that an earlier owner changes nothing.
  epoch integer not null default 0,
  -- The process that has the task in hand. If it is null, any process may claim the task once it is due (ADR 0149).
  owner text,
  -- When the next step is due. While a process has the task in hand this time is in the past, so that the task is due
  -- again if the process dies.
  due_at timestamptz not null default 'epoch',
  -- Identifies the steps that are claimed together: the submits of a model, the polls of an account, or the calls under
  -- one rate limit of a vendor.
  queue text not null default 'submits',
  deadline_at timestamptz not null,
  -- Number of the latest row in vendor_attempts.
  attempt integer not null default 0,
  -- What the vendor last reported, in per cent. Null if it reports no progress.
  progress smallint,
  -- The account of the next submit, while the task waits for a slot or a permit there.
  account_id text,
  -- The concurrency limit in which the task counts: that of an account, or of one model of an account (ADR 0108). If
  -- `slot_held` is false, the task waits for a slot. The slot is part of the run, so it cannot leak.
  slot_key text,
  slot_held boolean not null default false,
  -- The configured number of slots of `slot_key` when the task began to wait for one.
  slot_max integer,
  -- Whether another process received the vendor's callback: the owner must poll the job now (ADR 0107).
  callback_received boolean not null default false,
  -- The artifacts of media that were fetched from the client's URLs, by JSON pointer.
  inputs jsonb,
  -- The task's own webhook: `url`, its `origin`, `events`, `format`.
  webhook jsonb,
  -- Whether the store went back in time and may have lost the task's latest submit (docs/standbys.md).
  in_doubt boolean not null default false
-- Every step changes an indexed column.
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);
create index runs_due on runs (queue, due_at, task_id) where owner is null;
create index runs_deadline on runs (deadline_at) where owner is null;
create index runs_owner on runs (owner) where owner is not null;
create index runs_api_key on runs (api_key_id);
create index runs_in_doubt on runs (task_id) where in_doubt;
create index runs_slot on runs (slot_key, slot_held, task_id) where slot_key is not null;

-- One row for each paid submit, committed before it is sent (docs/reference/vendors.md#paid-submit-protocol).
create table vendor_attempts (
  task_id uuid not null,
  n integer not null,
  vendor text not null,
  account_id text not null,
  -- SHA-256 of the sent body.
  body_hash bytea not null,
  -- ambiguous: the vendor may or may not have accepted the job, so it is never submitted again.
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

-- Accepted callbacks of vendors, so that replays are refused (ADR 0107).
create table vendor_callbacks (
  -- SHA-256 of the signed message.
  digest bytea primary key,
  -- After this time the callback would be refused because of its age.
  expires_at timestamptz not null
);
create index vendor_callbacks_expiry on vendor_callbacks (expires_at);

-- The first response to a create with an Idempotency-Key (docs/reference/tasks.md#idempotency).
create table idempotency_keys (
  user_id uuid not null,
  key text not null,
  request_hash bytea not null,
  body text not null,
  -- Values from the headers of that response.
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
  sha256 bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index artifacts_expiry on artifacts (expires_at);
create index artifacts_task on artifacts (task_id);
create index artifacts_inputs on artifacts (user_id) where role = 'input';

-- The bytes of each user's inputs in `artifacts`, updated in the same transactions. The quota of a user is checked
-- under the lock of this row.
create table kept_inputs (
  user_id uuid primary key,
  bytes bigint not null check (bytes >= 0)
);

-- Files of users for batches (docs/reference/files.md); the bytes are in the artifact store.
create table files (
  id text primary key,
  user_id uuid not null,
  -- batch: uploaded by the user; batch_output: created by a batch.
  purpose text not null check (purpose in ('batch', 'batch_output')),
  filename text not null,
  bytes bigint not null check (bytes >= 0),
  created_at timestamptz not null,
  -- When its removal is due.
  expires_at timestamptz not null,
  -- When the user deleted it. It counts in the quota until its bytes are gone.
  deleted_at timestamptz
);
create index files_user on files (user_id, id);
create index files_expiry on files (expires_at);

-- The progress of an hourly retention job, so that it does not start from the beginning each time.
create table retention_marks (
  name text primary key,
  task_id uuid not null
);

-- Vendor accounts --------------------------------------------------------------------------------------

-- Accounts whose tasks must be finished after the accounts were removed from the configuration (ADR 0186).
create table vendor_accounts (
  id text primary key,
  -- The settings with the key, as JSON, encrypted under MASTER_KEY.
  sealed bytea not null,
  -- When a process last had the account in its configuration, by the database's clock.
  configured_at timestamptz not null
);

-- Accounts that get no new work (docs/reference/vendors.md#draining-an-account).
create table account_drains (
  account_id text primary key,
  since timestamptz not null
);

-- Charges for tasks and calls, by day and account. Each settling connection has its own row, so that transactions do
-- not wait for each other's rows (ADR 0164).
create table account_days (
  day date not null,
  account_id text not null,
  shard integer not null,
  credits bigint not null check (credits >= 0),
  primary key (day, account_id, shard)
);

-- Accounts, or models of an account, to which no jobs are submitted for now, because the vendor refused the service
-- itself. A resolved fault stays as the latest one.
create table vendor_faults (
  key text primary key,
  until timestamptz not null,
  account_id text,
  model text,
  at timestamptz,
  http_status integer,
  -- What the operator must do.
  remedy text
);

-- The rate limit of calls to a vendor, shared by all processes, which lease permits (ADR 0195).
create table rate_leases (
  key text primary key,
  -- When the next free permit is valid.
  next_at timestamptz not null,
  -- The time between two permits; null if it is not known yet.
  spacing interval,
  -- Permits leased in this minute.
  minute timestamptz,
  used integer not null default 0
);

-- When a vendor last sent a callback for a job of an account, accurate to ten seconds. While callbacks arrive, polls
-- are rare (docs/reference/vendors.md#poll-interval, ADR 0195).
create table callback_times (
  account_id text primary key,
  called_at timestamptz not null
);

-- Passthrough calls ------------------------------------------------------------------------------------

-- Receipts of metered calls. Each is written once, when the call has ended
-- (docs/reference/wallet.md#receipts-of-calls). In day partitions, like the events, deliveries and attempts below,
-- because retention drops whole days (ADR 0053).
create table calls (
  id uuid not null,
  user_id uuid not null,
  api_key_id text,
  vendor text not null,
  model text,
  route text not null,
  account_id text,
  -- lost: the cost of the call is unknown, so nothing is charged.
  outcome text not null check (outcome in ('settled', 'released', 'lost')),
  -- Status of the vendor's response; null if there was none.
  http_status integer,
  -- The amount held for the call when it ended.
  held bigint not null check (held >= 0),
  captured bigint not null check (captured >= 0 and captured <= held),
  usage jsonb,
  sandbox boolean not null,
  trace_id text,
  -- The catalog that priced the call.
  catalog_id integer,
  -- The vendor's id of the request, to find the call on a bill (ADR 0192).
  request_id text,
  -- For a stream: milliseconds from the beginning of the call to the first chunk.
  first_token_ms integer,
  -- For an alias: its name and the skipped models.
  alias jsonb,
  -- A late_charge entry paid for the call, or for what it cost beyond its hold.
  charged_late boolean not null default false,
  created_at timestamptz not null,
  ended_at timestamptz not null,
  -- Receipts are searched only within their user (ADR 0072).
  primary key (user_id, id, created_at)
) partition by range (created_at);
create table calls_default partition of calls default;
-- For lists over all users. Ids are created in order of time, so new entries go to the end of the index.
create index calls_id on calls (id);
-- Shows which parts of a day may contain a trace. A call writes it only when a part is full.
create index calls_trace on calls using brin (trace_id text_bloom_ops) with (autosummarize = on);

-- What calls sent and received, for users who want it kept: the newest calls of each user (ADR 0309).
create table call_contents (
  user_id uuid not null,
  call_id uuid not null,
  -- Both sides as text, encrypted under MASTER_KEY.
  sealed bytea not null,
  created_at timestamptz not null,
  primary key (user_id, call_id)
);
-- Ciphertext does not compress.
alter table call_contents alter column sealed set storage external;
create index call_contents_age on call_contents (created_at);

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
  secret bytea,
  secret_preview text,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  -- Whether this hidden endpoint carries the limits for task webhooks at one origin, which is its url. The user's
  -- webhook secret signs them. It is removed together with its log (docs/reference/webhooks.md#webhook-of-a-task).
  of_tasks boolean not null default false,
  -- Selects the tasks whose events it gets, by `models` and `metadata`; null for all.
  filter jsonb,
  -- `openai`: OpenAI's version of the events that have one (events.openai).
  format text not null default 'gateway' check (format in ('gateway', 'openai')),
  -- The first failed attempt since the last success, and whether webhook.failing was published for it.
  failing_since timestamptz,
  failing_told boolean not null default false,
  check (of_tasks or (secret is not null and secret_preview is not null))
);
create index webhook_endpoints_user on webhook_endpoints (user_id) where deleted_at is null and not of_tasks;
create unique index webhook_endpoints_of_tasks on webhook_endpoints (user_id, url)
  where deleted_at is null and of_tasks;
create index webhook_endpoints_failing on webhook_endpoints (failing_since)
  where failing_since is not null and not failing_told;

-- The secrets that sign task webhooks. Both are encrypted.
create table webhook_secrets (
  user_id uuid primary key references users,
  secret bytea not null,
  secret_preview text not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  updated_at timestamptz not null
);

create table events (
  id text not null,
  created_at timestamptz not null,
  user_id uuid not null,
  type text not null,
  task_id uuid,
  -- The bytes that deliveries send.
  body bytea not null,
  trace_id text,
  -- OpenAI's version of the event, if there is one: `type`, and as `body` the text that deliveries of this type send.
  openai jsonb,
  primary key (id, created_at)
) partition by range (created_at);
create table events_default partition of events default;

-- The delivery of one event to one endpoint. The id contains created_at, so that the id alone identifies the partition.
create table deliveries (
  id text not null,
  created_at timestamptz not null,
  user_id uuid not null,
  endpoint_id text not null,
  event_id text not null,
  event_created_at timestamptz not null,
  event_type text not null,
  task_id uuid,
  -- An attempt in progress is not recorded here: read deliveries_and_claims (ADR 0114).
  status text not null check (status in ('pending', 'delivering', 'succeeded', 'failed', 'skipped')),
  -- Attempts that have ended, except lost ones.
  attempts integer not null default 0,
  updated_at timestamptz not null,
  -- The URL of the task's own webhook; null if the endpoint's URL is used.
  webhook_url text,
  primary key (id, created_at)
) partition by range (created_at);
-- A delivery is inserted and then updated once. Half of each page is left free, so that the new version fits on the
-- same page and no index is written again. day_partition_create does the same.
create table deliveries_default partition of deliveries default with (fillfactor = 50);
create index deliveries_user on deliveries (user_id, id desc);
create index deliveries_task on deliveries (task_id) where task_id is not null;
create index deliveries_endpoint on deliveries (endpoint_id, id desc);

-- Attempts that have ended, each written once (ADR 0114). Attempts in progress are claims in delivery_queue.
create table delivery_attempts (
  delivery_id text not null,
  seq integer not null,
  endpoint_id text not null,
  due_at timestamptz not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  -- Status of the response; null if there was none.
  status integer,
  -- The class of the failure; null if the attempt succeeded.
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
  -- Whether the user resent it: it is sent even while the endpoint is disabled (docs/reference/webhooks.md#redelivery).
  manual boolean not null default false
);
create index delivery_queue_due on delivery_queue (due_at) where owner is null;
create index delivery_queue_endpoint on delivery_queue (endpoint_id, due_at) where owner is null;
create index delivery_queue_claimed on delivery_queue (endpoint_id) where owner is not null;

-- Every attempt, including those in progress.
create view attempts_and_claims as
select delivery_id, seq, endpoint_id, due_at, started_at, ended_at, status, failure, detail, answer, remote_address
from delivery_attempts
union all
select id, seq, endpoint_id, due_at, claimed_at, null, null, null, null, null, null
from delivery_queue where owner is not null;

-- Deliveries as displayed: a delivery with a claim is `delivering` since that claim (ADR 0114).
create view deliveries_and_claims as
select d.id, d.created_at, d.user_id, d.endpoint_id, d.event_id, d.event_created_at, d.event_type, d.task_id,
  d.webhook_url, case when q.owner is null then d.status else 'delivering' end as status, d.attempts,
  case when q.owner is null then d.updated_at else greatest(d.updated_at, q.claimed_at) end as updated_at,
  case when q.owner is null then q.due_at end as next_due_at
from deliveries d left join lateral (
  select c.owner, c.claimed_at, c.due_at from delivery_queue c where c.id = d.id offset 0
) q on true;

-- Processes --------------------------------------------------------------------------------------------

-- The processes of the service. A process is alive while its heartbeat is recent (ARCHITECTURE.md#rules-of-safety).
create table processes (
  id text primary key,
  started_at timestamptz not null,
  -- -infinity after a clean stop.
  heartbeat_at timestamptz not null,
  -- When the process stopped cleanly. The row stays for a while, because the attempts of the process count in the rate
  -- limit of endpoints (ADR 0104).
  left_at timestamptz,
  -- Raised by each heartbeat of the process and by each batch of its paid submits. The process remembers the highest
  -- committed number: a lower number in the store means that the store went back in time (docs/standbys.md).
  advance bigint not null default 0
);

-- The timeline of the server, which changes with each promotion, and when it began.
create table store_timeline (
  only_row boolean primary key default true check (only_row),
  timeline integer not null,
  since timestamptz not null
);

-- One row for each time that the store was found to have gone back in time, or was declared restored.
create table store_marks (
  restored_at timestamptz primary key,
  -- The latest heartbeat in the store: later writes are lost.
  trusted_until timestamptz,
  -- A process, or a command.
  marked_by text not null,
  tasks_in_doubt integer not null
);

-- Periodic duties that one process does for all: when each last began, and which process did it (ADR 0202). Unlogged:
-- after a crash of the server all begin again.
create unlogged table duties (
  name text primary key,
  -- The beginning of the interval.
  begun_at timestamptz not null,
  process_id text not null
);

-- Audit log --------------------------------------------------------------------------------------------

-- One row per write through the management API, in the transaction of the write (docs/reference/audit.md). In month
-- partitions, named by their first day (ADR 0168).
create table audit_entries (
  id text not null,
  created_at timestamptz not null,
  -- The operation's name in OpenAPI.
  type text not null,
  actor_type text not null check (actor_type in ('operator', 'api_key', 'session', 'access_token')),
  -- The key, the session or the subject of the access token; null for the operator's token. A subject is erased with
  -- its user.
  actor_id text,
  actor_user_id uuid,
  -- Erased with its user.
  ip_address text,
  -- The user whose data were changed or read.
  user_id uuid,
  resource_id text,
  -- The fields of the request. Secrets and personal data are replaced by "[hidden]".
  changes jsonb not null,
  trace_id text,
  primary key (id, created_at)
) partition by range (created_at);
create table audit_entries_default partition of audit_entries default;
create index audit_entries_user on audit_entries (user_id, id desc);

-- Triggers ---------------------------------------------------------------------------------------------

-- Raises GW001 when rows that never change, or are never deleted, would be.
create function forbid_change() returns trigger language plpgsql as $$
begin
  raise exception '% rows are never changed', tg_table_name using errcode = 'GW001';
end $$;

-- Raises GW001 when a row would move to another wallet.
create function forbid_wallet_change() returns trigger language plpgsql as $$
begin
  raise exception 'a row of % keeps its wallet', tg_table_name using errcode = 'GW001';
end $$;

-- Raises GW001 if an inserted row has no wallet. One lookup per statement; a foreign key would do one per row, which is
-- an eighth of the cost of a call.
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

-- Raises GW001 if a wallet differs from its latest ledger entry at commit, whatever wrote it.
create function check_wallet_matches_ledger() returns trigger language plpgsql as $$
begin
  if new.entry_count = 0 then return null; end if;
  perform from wallet_entries e
    where e.ctid = new.last_entry::tid and e.user_id = new.user_id and e.seq = new.entry_count
      and e.settled_after = new.settled and e.held_after = new.held;
  if found then return null; end if;
  perform from wallet_entries e
    where e.user_id = new.user_id and e.seq = new.entry_count
      and e.settled_after = new.settled and e.held_after = new.held;
  if not found then
    raise exception 'wallet % differs from its ledger', new.user_id using errcode = 'GW001';
  end if;
  return null;
end $$;

-- Raises GW001 if a change lowers what is available (settled - held) below zero by more than its late charges.
create function check_wallet_covers_holds() returns trigger language plpgsql as $$
declare
  before bigint := 0;
  late bigint := 0;
begin
  if tg_op = 'UPDATE' then
    before := old.settled - old.held;
    select coalesce(sum(e.amount), 0) into late from wallet_entries e
      where e.user_id = new.user_id and e.seq > old.entry_count and e.seq <= new.entry_count and e.kind = 'late_charge';
  end if;
  if new.settled - new.held < least(before, 0) - late then
    raise exception 'wallet % does not cover its holds', new.user_id using errcode = 'GW001';
  end if;
  return null;
end $$;

-- Raises GW001, unless the change erases the operator's note together with its user: the entry itself never changes.
create function forbid_entry_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.subject_id is null and new.note is null
    and to_jsonb(new) - 'note' = to_jsonb(old) - 'note' then
    return new;
  end if;
  raise exception '% rows are never changed', tg_table_name using errcode = 'GW001';
end $$;

-- Raises GW001, unless the change erases the address, and for an access token the subject, of a deleted user.
create function forbid_audit_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and new.ip_address is null
    and (new.actor_id is not distinct from old.actor_id or old.actor_type = 'access_token' and new.actor_id is null)
    and to_jsonb(new) - '{ip_address,actor_id}'::text[] = to_jsonb(old) - '{ip_address,actor_id}'::text[] then
    return new;
  end if;
  raise exception 'audit entries are never changed' using errcode = 'GW001';
end $$;

create constraint trigger wallets_match_ledger
  after insert or update of settled, held, entry_count on wallets
  deferrable initially deferred for each row execute function check_wallet_matches_ledger();
-- Runs at the end of the statement, so that it sees the entries that the statement wrote.
create trigger wallets_cover_holds after insert or update of settled, held on wallets
  for each row when (new.settled < new.held) execute function check_wallet_covers_holds();
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
  for each row execute function forbid_entry_change();
create trigger wallet_entries_never_truncated before truncate on wallet_entries
  for each statement execute function forbid_change();
create trigger catalogs_never_changed before update or delete on catalogs
  for each row execute function forbid_change();
create trigger catalogs_never_truncated before truncate on catalogs
  for each statement execute function forbid_change();
create trigger audit_entries_never_changed before update or delete on audit_entries
  for each row execute function forbid_audit_change();
create trigger audit_entries_never_truncated before truncate on audit_entries
  for each statement execute function forbid_change();
create trigger audit_entries_never_truncated before truncate on audit_entries_default
  for each statement execute function forbid_change();

-- Types of the functions' parameters and results ---------------------------------------------------------

-- One result of task_accept_many. For a replayed request, the columns from `request_hash` to `balance` are those of the
-- first response.
create type task_accept_result as (
  n integer,
  -- accepted, replayed, balance_too_low or too_many_running.
  outcome text,
  request_hash bytea,
  body text,
  cost bigint,
  balance bigint,
  -- The endpoints that have a new delivery.
  endpoints text[]
);

-- A charge that left a wallet below its threshold, and the available balance after it.
create type threshold_crossing as (user_id uuid, available bigint, threshold bigint);

-- A batch as one parameter, with one array per column, because the server reads arrays in a fifth of the time of JSON.
-- The calls that calls_write settles.
create type ended_calls as (
  ids uuid[], users uuid[], captured bigint[], outcomes text[], statuses integer[], accounts text[], usages text[]
);

-- The calls for which calls_write takes holds.
create type started_calls as (ids uuid[], users uuid[], keys text[], amounts bigint[], receipts text[]);

-- The calls whose holds calls_raise raises, and the new amounts.
create type raised_calls as (ids uuid[], users uuid[], amounts bigint[]);

-- The change that reservations_renew makes for each key.
create type reservation_sizes as (
  keys text[],
  -- Identifies the secret with which the process authenticated the key (ADR 0190).
  rotations integer[],
  users uuid[],
  holds uuid[],
  -- The catalog of all running and future calls of the key (ADR 0116).
  catalogs integer[],
  needs bigint[],
  extras bigint[],
  -- The number and the sum of the key's captures.
  captures bigint[],
  charged bigint[]
);

-- The calls that reservations_renew settles.
create type drawn_calls as (
  ids uuid[],
  -- The position of the call's key in reservation_sizes.
  places integer[],
  -- The number of the call's capture among its key's captures; 0 if the call costs nothing.
  numbers bigint[],
  -- The sum of the key's captures up to and including this one.
  totals bigint[],
  -- Unix time in milliseconds.
  started_ms bigint[],
  amounts bigint[],
  captured bigint[],
  outcomes text[],
  statuses integer[],
  accounts text[],
  -- With the number of the call's catalog as `catalog` and the vendor's id of the request as `request`.
  usages text[],
  vendors text[],
  models text[],
  routes text[],
  sandboxes boolean[],
  traces text[]
);

-- The sums that the settled calls of each key and model add to the rollup
-- (docs/reference/usage.md#rollup).
create type drawn_usage as (
  places integer[], vendors text[], models text[], sandboxes boolean[], requests bigint[], input bigint[],
  cached bigint[], output bigint[], credits bigint[], errors bigint[],
  -- Arrays as text, because they differ in length.
  durations text[]
);

-- What was settled at one time, as rows of the rollup for `usage_add`.
create type usage_sum as (
  user_id uuid, at timestamptz, api_key_id text, vendor text, model text, sandbox boolean, requests bigint,
  input_tokens bigint, input_cached_tokens bigint, output_tokens bigint, images bigint, videos bigint, audios bigint,
  seconds bigint, credits bigint, tasks bigint, errors bigint, durations integer[]
);

-- Adds up two histograms of durations: the index of the first class, then the count of it and of each following class
-- (docs/reference/usage.md#durations).
create function durations_add(a integer[], b integer[]) returns integer[] language plpgsql immutable parallel safe as $$
declare
  behind integer;
begin
  if a is null then return b; end if;
  if b is null then return a; end if;
  if b[1] < a[1] then a := b[1] || (array_fill(0, array[a[1] - b[1]]) || a[2:]); end if;
  behind := b[1] - a[1];
  if behind + cardinality(b) > cardinality(a) then
    a := a || array_fill(0, array[behind + cardinality(b) - cardinality(a)]);
  end if;
  for n in 2..cardinality(b) loop
    a[behind + n] := least(a[behind + n]::bigint + b[n], 2147483647);
  end loop;
  return a;
end $$;

create aggregate durations_sum(integer[]) (sfunc = durations_add, stype = integer[], parallel = safe);

-- One result of calls_write: a call that was refused (`id`, `refused`), or a balance alert to publish in this
-- transaction (the other three columns).
create type calls_write_result as (
  id uuid,
  -- key: it was revoked, has expired or lacks the scope. balance: it is too low. lost: the hold to raise no longer
  -- exists.
  refused text,
  user_id uuid,
  available bigint,
  threshold bigint
);

-- One result of reservations_renew: the new state of a reservation (the first five columns), or a balance alert to
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

-- One row of catalog_adopt: the latest adoption.
create type catalog_adoption as (
  -- The number of the adoption, and of its catalog.
  adoption integer,
  catalog integer,
  hash text,
  -- Null if the caller already has this catalog.
  text text,
  adopted_at timestamptz
);
