-- What owners and operators set on keys and users: docs/reference/keys-and-limits.md.

alter table api_keys
  -- How often the key was rotated: names its secret (ADR 0190).
  add column rotations integer not null default 0,
  -- SHA-256 of the secret before, and until when that one opens the key too; null: not any more.
  add column previous_key_hash bytea,
  add column previous_key_until timestamptz,
  -- Of the key's user: a copy, so that an admission reads one row.
  add column user_rate_limit_per_minute integer;
create unique index api_keys_previous_key_hash on api_keys (previous_key_hash) where previous_key_hash is not null;

-- `rotations` of the key whose secret was exchanged: the session ends with that secret.
alter table sessions add column key_rotations integer;

-- Limits that operators set on a user, in place of the configured ones (ADR 0191). Null: the configured ones.
alter table users
  add column rate_limit_per_minute integer check (rate_limit_per_minute > 0),
  add column concurrent_tasks integer check (concurrent_tasks > 0);

-- The vendor's id of the request, to find the call on a bill (ADR 0192).
alter table calls add column request_id text;

-- Users whose usage has to be made anew from the ledger, because they were charged before it was summed up
-- (docs/reference/usage.md#rebuild): each day from this one on. Null: from the first.
create table usage_rebuilds (
  user_id uuid primary key,
  next_day date
);
insert into usage_rebuilds (user_id) select w.user_id from wallets w where w.entry_count > 0;

-- Spend limits whose counts cannot be right (docs/reference/wallet.md#wallet-audit), and when that was looked at.
alter table wallet_audit_rounds
  add column drifting_budgets integer not null default 0,
  add column budgets_checked_at timestamptz;
