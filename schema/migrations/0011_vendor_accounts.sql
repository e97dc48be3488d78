-- Vendor accounts whose tasks can be finished after they were taken out of the configuration (ADR 0186).
create table vendor_accounts (
  id text primary key,
  -- The settings with the key, as JSON, encrypted under MASTER_KEY.
  sealed bytea not null,
  -- When a process had it in its configuration last, by the clock of the database.
  configured_at timestamptz not null
);

-- What was charged for tasks and calls, by day and vendor account. A row for each connection that settles, so that
-- no two transactions wait for one row (ADR 0187).
create table account_days (
  day date not null,
  account_id text not null,
  shard integer not null,
  credits bigint not null check (credits >= 0),
  primary key (day, account_id, shard)
);

-- Permits that were leased in this minute.
alter table rate_leases add column minute timestamptz, add column used integer not null default 0;

-- The catalog whose prices the calls of a reservation have (ADR 0188). Null: not a reservation, or from before.
alter table holds add column catalog_id integer;

-- What the vendor said, and of which model; a fault that is closed stays, as the last one. Null: from before.
alter table vendor_faults add column account_id text, add column model text, add column at timestamptz,
  add column http_status integer, add column remedy text;
