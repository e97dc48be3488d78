-- The money verbs for one wallet. A caller locks the wallet (`wallet_lock`), keeps it in a variable, runs any number of
-- verbs, and writes it back. docs/reference/wallet.md#invariants

-- Locks a wallet until the end of the transaction. Returns nulls if it does not exist.
create or replace function wallet_lock(p_user uuid) returns wallets language plpgsql as $$
declare w wallets;
begin
  select * into w from wallets where user_id = p_user for no key update;
  return w;
end $$;

-- Stores a wallet that the caller has locked and changed.
create or replace function wallet_write(w wallets) returns void language plpgsql as $$
begin
  update wallets set
      settled = w.settled, held = w.held, entry_count = w.entry_count, state = w.state,
      last_alert_at = w.last_alert_at, rearmed_by_top_up = w.rearmed_by_top_up, alert_withheld = w.alert_withheld
    where user_id = w.user_id;
end $$;

-- Settles a hold that the caller has deleted: captures p_captured of it and releases the rest. The caller writes the
-- balances of `w` and the entries. `alert`: balance.low must be published in this transaction.
create or replace function wallet_charge(
  inout w wallets, h holds, p_captured bigint, p_throttle interval, p_now timestamptz, out alert boolean
) language plpgsql as $$
begin
  if p_captured is null or p_captured < 0 or p_captured > h.amount then
    raise exception 'capture % is outside the hold of %', p_captured, h.amount using errcode = 'GW001';
  end if;
  if h.budget_epoch is not null then perform key_budget_settle(h, p_captured); end if;
  w.settled := w.settled - p_captured;
  w.held := w.held - h.amount;
  w.entry_count := w.entry_count + case when p_captured > 0 and p_captured < h.amount then 2 else 1 end;
  alert := p_captured > 0 and wallet_alert_due(w, p_throttle, p_now);
  if alert then
    update wallets o set state = 'ALERTED', last_alert_at = p_now, rearmed_by_top_up = false, alert_withheld = false
      where o.user_id = w.user_id returning o.state, o.last_alert_at, o.rearmed_by_top_up, o.alert_withheld
      into w.state, w.last_alert_at, w.rearmed_by_top_up, w.alert_withheld;
  elsif p_captured > 0 and wallet_alert_throttled(w, p_throttle, p_now) then
    update wallets o set alert_withheld = true where o.user_id = w.user_id;
    w.alert_withheld := true;
  end if;
end $$;

-- Sets the threshold of the balance alert. Returns no row if there is no such wallet.
create or replace function wallet_threshold_set(p_user uuid, p_threshold bigint) returns setof wallets language sql as $$
  update wallets set trigger_threshold = p_threshold,
      state = case when settled >= p_threshold then 'NORMAL' else state end,
      alert_withheld = alert_withheld and settled < p_threshold
    where user_id = p_user
    returning *
$$;

-- A top-up, or an adjustment, which may be negative. Repeating an operation changes nothing and returns `repeated`,
-- with the wallet as it was after the first time. Raises GW404 (no wallet), GW422 (the operation id belongs to another
-- change), GW409 (an adjustment would leave less than is held) and GW410 (more than a wallet can contain).
-- docs/reference/wallet.md#top-ups-and-adjustments
create or replace function wallet_top_up(
  p_user uuid, p_kind text, p_amount bigint, p_operation text, p_note text, p_trace text, p_now timestamptz,
  out w wallets, out repeated boolean
) language plpgsql as $$
declare
  e wallet_entries;
  settled_max constant bigint := 9000000000000000000;
begin
  w := wallet_lock(p_user);
  if w.user_id is null then
    raise exception 'there is no wallet %', p_user using errcode = 'GW404';
  end if;
  select * into e from wallet_entries where operation_id = p_operation and subject_id is null;
  repeated := found;
  if repeated then
    if (e.user_id, e.kind, e.amount, e.note) is distinct from (p_user, p_kind, p_amount, p_note) then
      raise exception 'operation % was another change', p_operation using errcode = 'GW422';
    end if;
    w.settled := e.settled_after;
    w.held := e.held_after;
    w.state := e.state_after;
    w.trigger_threshold := e.threshold_after;
    return;
  end if;
  if p_amount > settled_max - w.settled then
    raise exception 'the balance would be more than a wallet can hold' using errcode = 'GW410';
  end if;
  if p_amount < 0 and w.settled + p_amount < w.held then
    raise exception 'the adjustment would leave less than what is held' using errcode = 'GW409';
  end if;
  w.settled := w.settled + p_amount;
  w.entry_count := w.entry_count + 1;
  if w.settled >= w.trigger_threshold then
    w.state := 'NORMAL';
    w.alert_withheld := false;
    w.rearmed_by_top_up := w.rearmed_by_top_up or p_kind = 'top_up';
  end if;
  perform wallet_write(w);
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, note, trace_id, created_at,
     state_after, threshold_after)
  values
    (p_user, w.entry_count, p_kind, p_amount, w.settled, w.held, p_operation, p_note, p_trace, p_now,
     w.state, w.trigger_threshold);
end $$;

-- Whether a charge that resulted in this wallet makes balance.low due and an endpoint subscribes to it.
-- docs/reference/wallet.md#balance-alert
create or replace function wallet_alert_due(w wallets, p_throttle interval, p_now timestamptz)
returns boolean language plpgsql stable as $$
begin
  if w.settled < w.trigger_threshold
    and w.state = 'NORMAL'
    and (w.last_alert_at is null or w.rearmed_by_top_up or w.last_alert_at + p_throttle <= p_now)
  then
    -- A separate statement, because as part of the condition it would be planned for each charge.
    return exists (
      select 1 from webhook_endpoints e
      where e.user_id = w.user_id and e.enabled and e.deleted_at is null and 'balance.low' = any (e.events)
    );
  end if;
  return false;
end $$;

-- Whether only the throttle withholds the alert for a charge that resulted in this wallet. The caller has found that
-- the alert is not due.
create or replace function wallet_alert_throttled(w wallets, p_throttle interval, p_now timestamptz)
returns boolean language plpgsql stable as $$
begin
  return not w.alert_withheld
    and w.last_alert_at + p_throttle > p_now
    -- Whether the alert would be due if the throttle were over.
    and wallet_alert_due(w, p_throttle, w.last_alert_at + p_throttle);
end $$;

-- Marks the withheld alerts whose throttle window is over and whose balance is still below the threshold, and returns
-- them. Drops the others. Called in a transaction that publishes them at p_now. Records the ledger entry that each
-- alert follows, for readers of the user's events. There is a charge between two alerts of a wallet, so no entry has
-- two alerts.
create or replace function wallet_alerts_report(p_throttle interval, p_max integer, p_now timestamptz)
returns setof threshold_crossing language plpgsql as $$
declare w wallets;
begin
  for w in
    select * from wallets u where u.alert_withheld and u.last_alert_at <= p_now - p_throttle
    order by u.last_alert_at limit p_max for no key update skip locked
  loop
    if wallet_alert_due(w, p_throttle, p_now) then
      update wallets u
        set state = 'ALERTED', last_alert_at = p_now, rearmed_by_top_up = false, alert_withheld = false
        where u.user_id = w.user_id;
      insert into withheld_alerts as a (user_id, seq, created_at) values (w.user_id, w.entry_count, p_now)
        on conflict (user_id, seq) do update set created_at = greatest(a.created_at, excluded.created_at);
      return next (w.user_id, w.settled - w.held, w.trigger_threshold)::threshold_crossing;
    else
      update wallets u set alert_withheld = false where u.user_id = w.user_id;
    end if;
  end loop;
end $$;

-- Marks the due alerts of these charges, and returns them in the same order. Only the first charge of a wallet causes
-- an alert. Raises GW428 if an alert is due but the caller has no transaction to publish it in (`p_alerts` is false).
create or replace function wallet_alerts_raise(
  p_crossed threshold_crossing[], p_throttle interval, p_alerts boolean, p_now timestamptz
) returns setof threshold_crossing language plpgsql as $$
declare
  crossing threshold_crossing;
  owner wallets;
begin
  foreach crossing in array p_crossed loop
    -- Reads each wallet only once.
    continue when owner.user_id = crossing.user_id;
    select * into owner from wallets u where u.user_id = crossing.user_id;
    if wallet_alert_due(owner, p_throttle, p_now) then
      if not p_alerts then
        raise exception 'an alert is due' using errcode = 'GW428';
      end if;
      update wallets u
        set state = 'ALERTED', last_alert_at = p_now, rearmed_by_top_up = false, alert_withheld = false
        where u.user_id = crossing.user_id;
      return next crossing;
    elsif wallet_alert_throttled(owner, p_throttle, p_now) then
      update wallets u set alert_withheld = true where u.user_id = crossing.user_id;
    end if;
  end loop;
end $$;
