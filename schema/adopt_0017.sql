-- Brings a database that stands at the former migration 0017 to 0001_initial, with its data. Applied by
-- src/db/AdoptedSchema.ts, in the transaction that also applies schema/functions.

-- The functions are created again, most of them with a new name.
drop function
  allowances_settle, allowances_settle_again, api_key_admit, api_keys_used, calls_write, day_partition,
  delivery_claim, delivery_free, delivery_queue_keep, delivery_record, delivery_requeue, delivery_room,
  event_publish, id_time, ledger_add, partitions_keep, task_accept, task_accept_many, task_finish_many,
  time_sorted_id, vendor_slots_take, vendor_turns_lease, wallet_add, wallet_alert_due, wallet_alerts,
  wallet_freeze, wallet_lock, wallet_thaw, wallet_write;
alter type task_acceptance rename to task_accept_result;
alter type wallet_crossing rename to threshold_crossing;
alter type call_notice rename to calls_write_result;
alter type allowance_notice rename to reservations_settle_result;

alter table manage_answers rename to manage_idempotency_keys;
alter table manage_idempotency_keys rename column answer to response;
alter index manage_answers_pkey rename to manage_idempotency_keys_pkey;
alter index manage_answers_age rename to manage_idempotency_keys_age;

alter table vendor_turns rename to rate_leases;
alter index vendor_turns_pkey rename to rate_leases_pkey;

alter table runs rename column slot to slot_key;
alter table runs rename column called to callback_received;
alter index runs_called rename to runs_callback_received;

drop index holds_allowances;
alter table holds drop constraint holds_kind_check;
update holds set kind = 'reservation' where kind = 'allowance';
alter table holds add constraint holds_kind_check check (kind in ('task', 'call', 'reservation'));
create unique index holds_reservations on holds (api_key_id, process_id) where kind = 'reservation';

-- Each of its cases is in wallet_entries_amount too.
alter table wallet_entries drop constraint wallet_entries_check;
alter table wallet_entries rename constraint wallet_entries_check1 to wallet_entries_balances;

alter function forbid_other_wallet() rename to forbid_wallet_change;
alter function rows_have_wallets() rename to check_wallets_exist;
alter function wallet_matches_ledger() rename to check_wallet_matches_ledger;
alter trigger wallets_kept on wallets rename to wallets_never_deleted;
alter trigger holds_have_wallets on holds rename to holds_wallet_exists;
alter trigger wallet_entries_have_wallets on wallet_entries rename to wallet_entries_wallet_exists;
alter trigger wallet_entries_immutable on wallet_entries rename to wallet_entries_never_changed;
alter trigger wallet_entries_kept on wallet_entries rename to wallet_entries_never_truncated;
