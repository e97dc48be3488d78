-- Limits of a single API key (docs/reference/keys-and-limits.md#limits-of-a-key, ADR 0160).
alter table api_keys
  -- What the key may spend in a period of the calendar in UTC. Null: as much as the wallet has.
  add column spend_limit bigint check (spend_limit >= 0),
  add column spend_reset text check (spend_reset in ('daily', 'weekly', 'monthly', 'never')),
  -- Null: every model.
  add column allowed_models text[],
  -- Null: only the limits of the configuration.
  add column rate_limit_per_minute integer check (rate_limit_per_minute > 0),
  add column concurrent_tasks integer check (concurrent_tasks > 0),
  add constraint api_keys_spend_limit check ((spend_limit is null) = (spend_reset is null));

-- What the key has spent and holds in the current period of its spend limit. Written under the lock of the wallet
-- that pays. A row stays when the limit is removed, so that no epoch is used twice.
create table key_budgets (
  api_key_id text primary key references api_keys on delete cascade,
  -- Counts the periods. A hold names the one in which it began (`holds.budget_epoch`).
  epoch integer not null,
  -- When the period began: by the calendar, or when the limit was set.
  since timestamptz not null,
  spent bigint not null check (spent >= 0),
  -- The sum of the open holds that began in the period.
  held bigint not null check (held >= 0)
) with (fillfactor = 50);

-- A key of the user has, or had, a limit that the store enforces. Read with the lock of the wallet, so that keys
-- without limits cost no look-up.
alter table wallets add column key_limits boolean not null default false;

-- The period of the budget of `api_key_id` that the hold counts in; null: in none.
alter table holds add column budget_epoch integer;
