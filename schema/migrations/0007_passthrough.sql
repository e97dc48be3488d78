-- Metered passthrough calls. A call holds like a task; its hold names the process that runs it, so that
-- a sweep frees the holds of the dead. Calls are opened and closed in batches: one statement for many.

alter table holds add column process_id text, add column call jsonb;
create index holds_calls on holds (created_at) where kind = 'call';

-- The receipt of a call, written once when it has ended.
create table calls (
  id uuid primary key,
  user_id uuid not null,
  api_key_id text,
  vendor text not null,
  model text,
  route text not null,
  account_id text,
  outcome text not null check (outcome in ('settled', 'released', 'lost')),
  http_status integer,
  held bigint not null check (held >= 0),
  captured bigint not null check (captured >= 0 and captured <= held),
  usage jsonb,
  sandbox boolean not null,
  trace_id text,
  created_at timestamptz not null,
  ended_at timestamptz not null
);
create index calls_user on calls (user_id, id desc);

-- Opens many calls: [{id, user, key, amount, trace, call}]. Answers why a call was refused, else null:
-- 'key' (revoked, expired or without the scope by now) or 'balance'. Wallets are locked in one order.
create function calls_open(p_calls jsonb, p_process text, p_now timestamptz)
returns table (id uuid, refused text) language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  r record;
  w wallets;
  live text[];
  ids uuid[] := '{}'; users uuid[] := '{}'; seqs bigint[] := '{}'; amounts bigint[] := '{}';
  settleds bigint[] := '{}'; helds bigint[] := '{}'; traces text[] := '{}'; notes jsonb[] := '{}';
begin
  select array_agg(k.id) into live from api_keys k
    where k.id in (select x ->> 'key' from jsonb_array_elements(p_calls) x)
      and k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
      and 'inference' = any (k.scopes);
  for r in
    select x.id, x."user" as user_id, x.key, x.amount, x.trace, x.call
    from jsonb_to_recordset(p_calls)
      as x(id uuid, "user" uuid, key text, amount bigint, trace text, call jsonb)
    order by 2
  loop
    id := r.id;
    refused := null;
    if w.user_id is distinct from r.user_id then
      update wallets u set held = w.held, entry_count = w.entry_count where u.user_id = w.user_id;
      select * into w from wallets u where u.user_id = r.user_id for no key update;
    end if;
    if live is null or not (r.key = any (live)) then
      refused := 'key';
    elsif w.user_id is null or w.settled - w.held < r.amount then
      refused := 'balance';
    else
      w.held := w.held + r.amount;
      w.entry_count := w.entry_count + 1;
      ids := ids || r.id; users := users || r.user_id; seqs := seqs || w.entry_count;
      amounts := amounts || r.amount; settleds := settleds || w.settled; helds := helds || w.held;
      traces := traces || r.trace; notes := notes || r.call;
    end if;
    return next;
  end loop;
  update wallets u set held = w.held, entry_count = w.entry_count where u.user_id = w.user_id;
  insert into holds (id, user_id, kind, amount, created_at, process_id, call)
    select h.id, h.user_id, 'call', h.amount, p_now, p_process, h.call
    from unnest(ids, users, amounts, notes) as h(id, user_id, amount, call);
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select e.user_id, e.seq, 'hold', e.amount, e.settled, e.held, 'hold:' || e.id, e.id, e.trace, p_now
    from unnest(ids, users, seqs, amounts, settleds, helds, traces)
      as e(id, user_id, seq, amount, settled, held, trace);
  update api_keys k set last_used_at = p_now
    where k.id = any (live) and (k.last_used_at is null or k.last_used_at < p_now - interval '1 minute');
end $$;

-- Closes many calls: [{id, captured, outcome, status, account, usage}]. Whoever deletes the hold wins;
-- a call that is closed already is passed over. Never captures more than was held.
-- Answers the wallets whose balance alert is to be emitted in this transaction (contract 1); raises GW428
-- when there is one and the caller has no transaction to emit it in (p_alerts false).
create function calls_close(p_calls jsonb, p_throttle interval, p_alerts boolean, p_now timestamptz)
returns table (user_id uuid, available bigint, threshold bigint) language plpgsql
-- Hot tables are small in live rows and long in dead ones: found by their keys, never read through.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  r record;
  w wallets;
  rest bigint;
  ids uuid[] := '{}'; users uuid[] := '{}'; seqs bigint[] := '{}'; kinds text[] := '{}';
  amounts bigint[] := '{}'; settleds bigint[] := '{}'; helds bigint[] := '{}'; traces text[] := '{}';
begin
  for r in
    with closing as (
      select x.* from jsonb_to_recordset(p_calls) as x(
        id uuid, captured bigint, outcome text, status integer, account text, usage jsonb)
    ), locked as (
      select l.user_id from wallets l
      where l.user_id in (select h.user_id from holds h join closing c on c.id = h.id)
      order by l.user_id for no key update
    ), gone as (
      delete from holds h using closing c
        where h.id = c.id and h.user_id in (select locked.user_id from locked) returning h.*
    ), receipts as (
      insert into calls
        (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
          usage, sandbox, trace_id, created_at, ended_at)
      select g.id, g.user_id, g.call ->> 'key', g.call ->> 'vendor', g.call ->> 'model', g.call ->> 'route',
        c.account, c.outcome, c.status, g.amount, least(c.captured, g.amount), c.usage,
        (g.call ->> 'sandbox')::boolean, g.call ->> 'trace', g.created_at, p_now
      from gone g join closing c on c.id = g.id
      returning id, user_id, held, captured, trace_id
    )
    select * from receipts order by receipts.user_id
  loop
    if w.user_id is distinct from r.user_id then
      update wallets u set settled = w.settled, held = w.held, entry_count = w.entry_count,
          state = w.state, last_alert_at = w.last_alert_at, rearmed_by_top_up = w.rearmed_by_top_up
        where u.user_id = w.user_id;
      select * into w from wallets u where u.user_id = r.user_id for no key update;
    end if;
    rest := r.held - r.captured;
    if r.captured > 0 then
      w.settled := w.settled - r.captured;
      w.held := w.held - r.captured;
      w.entry_count := w.entry_count + 1;
      ids := ids || r.id; users := users || r.user_id; seqs := seqs || w.entry_count;
      kinds := kinds || 'capture'::text; amounts := amounts || r.captured;
      settleds := settleds || w.settled; helds := helds || w.held; traces := traces || r.trace_id;
    end if;
    if rest > 0 or r.held = 0 then
      w.held := w.held - rest;
      w.entry_count := w.entry_count + 1;
      ids := ids || r.id; users := users || r.user_id; seqs := seqs || w.entry_count;
      kinds := kinds || 'release'::text; amounts := amounts || rest;
      settleds := settleds || w.settled; helds := helds || w.held; traces := traces || r.trace_id;
    end if;
    if r.captured > 0 and w.settled < w.trigger_threshold and w.state = 'NORMAL'
      and (w.last_alert_at is null or w.rearmed_by_top_up or w.last_alert_at + p_throttle <= p_now)
      and exists (
        select 1 from webhook_endpoints e
        where e.user_id = w.user_id and e.enabled and e.deleted_at is null and 'balance.low' = any (e.events)
      )
    then
      if not p_alerts then
        raise exception 'an alert is due' using errcode = 'GW428';
      end if;
      w.state := 'ALERTED';
      w.last_alert_at := p_now;
      w.rearmed_by_top_up := false;
      user_id := w.user_id;
      available := w.settled - w.held;
      threshold := w.trigger_threshold;
      return next;
    end if;
  end loop;
  update wallets u set settled = w.settled, held = w.held, entry_count = w.entry_count,
      state = w.state, last_alert_at = w.last_alert_at, rearmed_by_top_up = w.rearmed_by_top_up
    where u.user_id = w.user_id;
  insert into wallet_entries
    (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
    select e.user_id, e.seq, e.kind, e.amount, e.settled, e.held, e.kind || ':' || e.id, e.id, e.trace, p_now
    from unnest(ids, users, seqs, kinds, amounts, settleds, helds, traces)
      as e(id, user_id, seq, kind, amount, settled, held, trace);
end $$;
