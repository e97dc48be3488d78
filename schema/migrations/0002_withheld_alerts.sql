-- A charge crossed the threshold while the throttle withheld its alert: it is reported when the window ends, if it
-- still holds (docs/reference/wallet.md#balance-alert).
alter table wallets add column alert_withheld boolean not null default false;
create index wallets_alert_withheld on wallets (last_alert_at) where alert_withheld;
