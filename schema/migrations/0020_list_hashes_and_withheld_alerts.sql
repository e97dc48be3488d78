-- Balance alerts that the throttle withheld and that were reported at the end of its window. They have no entry in the
-- ledger: they stand behind the entry `seq`, the wallet's last one then (ADR 0232). Kept as long as the log.
create table withheld_alerts (
  user_id uuid not null,
  seq bigint not null,
  -- Of the event.
  created_at timestamptz not null,
  primary key (user_id, seq)
);
create index withheld_alerts_age on withheld_alerts (created_at);
