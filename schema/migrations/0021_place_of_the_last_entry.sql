-- Where the latest entry of a wallet lies, for the check at the commit: one page in place of all levels of an index that
-- grows with the ledger (ADR 0253). A hint: what lies there is compared, and a stale or absent one costs the look by key.
-- Text, because a driver may not know the type of places: processes of the release before read all columns of a wallet.
alter table wallets add column last_entry text;

-- Raises GW001 when a wallet differs from its latest ledger entry at the commit, whoever wrote it.
create or replace function check_wallet_matches_ledger() returns trigger language plpgsql as $$
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
