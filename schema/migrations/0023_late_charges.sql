-- Late charges (ADR 0270): a call that ends after another process took its own for dead, and released its hold, is charged.

alter table calls add column charged_late boolean not null default false;

alter table wallet_entries
  drop constraint wallet_entries_kind_check,
  drop constraint wallet_entries_amount,
  drop constraint wallet_entries_operation,
  drop constraint wallet_entries_balances,
  add constraint wallet_entries_kind_check
    check (kind in ('top_up', 'adjustment', 'hold', 'capture', 'release', 'late_charge')),
  add constraint wallet_entries_amount check (
    case kind
      when 'adjustment' then amount <> 0
      when 'top_up' then amount > 0
      when 'capture' then amount > 0
      when 'late_charge' then amount > 0
      else amount >= 0
    end),
  add constraint wallet_entries_operation check (
    case when kind in ('hold', 'capture', 'release', 'late_charge')
      then subject_id is not null and operation_id = kind || ':' || subject_id
      else subject_id is null and state_after is not null and threshold_after is not null
    end),
  add constraint wallet_entries_balances check (held_after >= 0);

-- Raises GW001 when a change lowers what is available (settled - held) below zero by more than its late charges.
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

alter table wallets drop constraint wallets_settled_covers_held;
-- Runs at the end of the statement, and sees the entries that the statement wrote.
create trigger wallets_cover_holds after insert or update of settled, held on wallets
  for each row when (new.settled < new.held) execute function check_wallet_covers_holds();
