-- The rollup of what was charged, by day, key and model (docs/reference/usage.md#rollup).

-- Adds what a transaction has settled, one row for each key and model. The caller holds the wallets' locks, so that
-- nobody else writes rows of these users.
create or replace function usage_add(p_used usage_days[]) returns void language plpgsql as $$
begin
  insert into usage_days as d
    (user_id, day, api_key_id, vendor, model, sandbox, requests, input_tokens, input_cached_tokens, output_tokens,
      images, videos, audios, seconds, credits, tasks)
  select u.user_id, u.day, u.api_key_id, u.vendor, u.model, u.sandbox, sum(u.requests), sum(u.input_tokens),
    sum(u.input_cached_tokens), sum(u.output_tokens), sum(u.images), sum(u.videos), sum(u.audios), sum(u.seconds),
    sum(u.credits),
    sum(u.tasks)
  from unnest(p_used) u
  group by u.user_id, u.day, u.api_key_id, u.vendor, u.model, u.sandbox
  on conflict (user_id, day, api_key_id, vendor, model, sandbox) do update set
    requests = d.requests + excluded.requests, input_tokens = d.input_tokens + excluded.input_tokens,
    input_cached_tokens = d.input_cached_tokens + excluded.input_cached_tokens,
    output_tokens = d.output_tokens + excluded.output_tokens, images = d.images + excluded.images,
    videos = d.videos + excluded.videos, audios = d.audios + excluded.audios,
    seconds = d.seconds + excluded.seconds, credits = d.credits + excluded.credits,
    tasks = d.tasks + excluded.tasks;
end $$;

-- The number of the first entry of a wallet that was written at this time or later, found by halving. Entries are
-- numbered without gaps; the clocks of processes may differ, so that the caller allows for an hour.
create or replace function ledger_seq_at(p_user uuid, p_entries bigint, p_at timestamptz)
returns bigint language plpgsql stable as $$
declare
  low bigint := 1;
  high bigint := p_entries + 1;
  middle bigint;
begin
  while low < high loop
    middle := (low + high) / 2;
    if (select e.created_at >= p_at from wallet_entries e where e.user_id = p_user and e.seq = middle) then
      high := middle;
    else
      low := middle + 1;
    end if;
  end loop;
  return low;
end $$;

-- Rebuilds the rollup of a user's day from tasks and receipts, and returns whether it differed. A day whose receipts or
-- bodies are gone stays unchanged if it agrees with the ledger; otherwise the ledger's surplus goes into a row without
-- key, vendor and model.
create or replace function usage_rebuild(p_user uuid, p_day date) returns boolean language plpgsql as $$
declare
  since constant timestamptz := p_day::timestamp at time zone 'UTC';
  until constant timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
  w wallets;
  former usage_days[];
  fresh usage_days[];
  charged bigint;
  rest bigint;
  is_less boolean;
begin
  w := wallet_lock(p_user);
  if w.user_id is null then return false; end if;
  with ended as (
    select e.subject_id as id, e.kind, e.amount from wallet_entries e
    where e.user_id = p_user and e.kind in ('capture', 'release', 'late_charge') and e.created_at >= since and e.created_at < until
      and e.seq >= ledger_seq_at(p_user, w.entry_count, since - interval '1 hour')
      and e.seq < ledger_seq_at(p_user, w.entry_count, until + interval '1 hour')
  ), settled as (
    select t.api_key_id, coalesce(t.candidates -> t.candidate ->> 'vendor', t.vendor) as vendor,
      coalesce(t.candidates -> t.candidate ->> 'model', t.model) as model, t.sandbox, t.captured,
      t.result_kind as kind, t.usage,
      jsonb_array_length(coalesce(t.result, '[]')) as items,
      case when jsonb_typeof(t.body -> 'duration') = 'number' then (t.body ->> 'duration')::float8 else 5 end as seconds,
      t.body = 'null' as is_erased
    from (select distinct id from ended) e
    cross join lateral (select * from tasks o
      where o.id = e.id and (o.status = 'completed' or o.captured > 0) offset 0) t
    union all
    select c.api_key_id, c.vendor, c.model, c.sandbox, c.captured, null, c.usage, 0, 0, false
    from calls c
    where c.user_id = p_user and c.outcome = 'settled' and c.ended_at >= since and c.ended_at < until
      and c.created_at >= since - interval '25 hours' and c.created_at < until + interval '1 hour'
  ), summed as (
    select coalesce(api_key_id, '') as key, vendor, coalesce(model, '') as model, sandbox, count(*) as requests, count(kind) as tasks,
      coalesce(sum((usage ->> 'inputTokens')::float8), 0) as input,
      coalesce(sum((usage ->> 'cachedInputTokens')::float8), 0) as cached,
      coalesce(sum((usage ->> 'outputTokens')::float8), 0) as output,
      coalesce(sum(items) filter (where kind = 'images'), 0) as images,
      coalesce(sum(items) filter (where kind = 'videos'), 0) as videos,
      coalesce(sum(items) filter (where kind = 'audios'), 0) as audios,
      coalesce(sum(items * seconds) filter (where kind = 'videos'), 0) as seconds, sum(captured) as credits,
      bool_or(is_erased) as is_erased
    from settled group by 1, 2, 3, 4
  )
  select array_agg((p_user, p_day, key, vendor, model, sandbox, requests, input, cached, output, images, videos, audios,
      seconds, credits, tasks)::usage_days order by key, vendor, model, sandbox),
    coalesce((select sum(amount) from ended where kind in ('capture', 'late_charge')), 0), coalesce(sum(credits), 0),
    coalesce(bool_or(is_erased), false)
  into fresh, charged, rest, is_less from summed;
  rest := charged - rest;
  select array_agg(d order by api_key_id, vendor, model, sandbox) into former
  from usage_days d where d.user_id = p_user and d.day = p_day;
  -- Free calls have no entries in the ledger: that their receipts are gone shows in the number of requests only.
  is_less := is_less or rest <> 0 or (select coalesce(sum(f.requests), 0) from unnest(fresh) f)
    < (select sum(k.requests) from unnest(former) k);
  if is_less and charged = (select sum(k.credits) from unnest(former) k) then return false; end if;
  if rest <> 0 then
    fresh := (p_user, p_day, '', '', '', false, 0, 0, 0, 0, 0, 0, 0, 0, rest, 0)::usage_days || fresh;
  end if;
  if former is not distinct from fresh then return false; end if;
  delete from usage_days d where d.user_id = p_user and d.day = p_day;
  perform usage_add(fresh);
  return true;
end $$;
