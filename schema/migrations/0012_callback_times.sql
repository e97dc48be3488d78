-- When a vendor last called for jobs of an account, to within ten seconds: while it calls, polls are rare
-- (docs/reference/vendors.md#poll-interval, ADR 0195).
create table callback_times (
  account_id text primary key,
  called_at timestamptz not null
);
