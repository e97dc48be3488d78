-- The rollups of charges by day and hour, key and model (docs/reference/usage.md#rollup).

-- A histogram with one duration (docs/reference/usage.md#durations). There are eight classes per power of two of
-- milliseconds, given by the exponent and the first three bits of the fraction of a double.
create or replace function durations_of(p_from timestamptz, p_to timestamptz) returns integer[]
language sql immutable parallel safe as $$
  select array[(('x' || encode(float8send(
    least(greatest(floor(extract(epoch from p_to - p_from) * 1000), 1), 2147483647)::float8), 'hex'))::bit(64)::bigint >> 49)::integer
    - 8184, 1]
$$;

-- The parts of a task's usage by model: one per model for a batch of several models, otherwise the usage itself.
create or replace function usage_shares(p_usage jsonb) returns table (share jsonb, is_first boolean)
language sql immutable parallel safe as $$
  select coalesce(m.share, p_usage), coalesce(m.n, 1) = 1
  from (select) o left join jsonb_array_elements(p_usage -> 'models') with ordinality as m (share, n) on true
$$;

-- Adds the charges that a transaction has settled to the rollups by day and by hour, one row of each per key and model.
-- The caller holds the locks of the wallets, so that no other transaction writes rows of these users.
create or replace function usage_add(p_used usage_sum[]) returns void language plpgsql as $$
begin
  with summed as materialized (
    select u.user_id, date_trunc('hour', u.at, 'UTC') as hour, u.api_key_id, u.vendor, u.model, u.sandbox,
      sum(u.requests) as requests, sum(u.input_tokens) as input_tokens,
      sum(u.input_cached_tokens) as input_cached_tokens, sum(u.output_tokens) as output_tokens, sum(u.images) as images,
      sum(u.videos) as videos, sum(u.audios) as audios, sum(u.seconds) as seconds, sum(u.credits) as credits,
      sum(u.tasks) as tasks, sum(u.errors) as errors, durations_sum(u.durations) as durations
    from unnest(p_used) u
    group by 1, 2, 3, 4, 5, 6
  ), by_hour as (
    insert into usage_hours as d
      (user_id, hour, api_key_id, vendor, model, sandbox, requests, input_tokens, input_cached_tokens, output_tokens,
        images, videos, audios, seconds, credits, tasks, errors, durations)
    select * from summed
    on conflict (user_id, hour, api_key_id, vendor, model, sandbox) do update set
      requests = d.requests + excluded.requests, input_tokens = d.input_tokens + excluded.input_tokens,
      input_cached_tokens = d.input_cached_tokens + excluded.input_cached_tokens,
      output_tokens = d.output_tokens + excluded.output_tokens, images = d.images + excluded.images,
      videos = d.videos + excluded.videos, audios = d.audios + excluded.audios,
      seconds = d.seconds + excluded.seconds, credits = d.credits + excluded.credits,
      tasks = d.tasks + excluded.tasks, errors = d.errors + excluded.errors,
      durations = durations_add(d.durations, excluded.durations)
  )
  insert into usage_days as d
    (user_id, day, api_key_id, vendor, model, sandbox, requests, input_tokens, input_cached_tokens, output_tokens,
      images, videos, audios, seconds, credits, tasks, errors, durations)
  select u.user_id, (u.hour at time zone 'UTC')::date, u.api_key_id, u.vendor, u.model, u.sandbox,
    sum(u.requests) as requests, sum(u.input_tokens) as input_tokens,
    sum(u.input_cached_tokens) as input_cached_tokens, sum(u.output_tokens) as output_tokens, sum(u.images) as images,
    sum(u.videos) as videos, sum(u.audios) as audios, sum(u.seconds) as seconds, sum(u.credits) as credits,
    sum(u.tasks) as tasks, sum(u.errors) as errors, durations_sum(u.durations) as durations
  from summed u
  group by 1, 2, 3, 4, 5, 6
  on conflict (user_id, day, api_key_id, vendor, model, sandbox) do update set
    requests = d.requests + excluded.requests, input_tokens = d.input_tokens + excluded.input_tokens,
    input_cached_tokens = d.input_cached_tokens + excluded.input_cached_tokens,
    output_tokens = d.output_tokens + excluded.output_tokens, images = d.images + excluded.images,
    videos = d.videos + excluded.videos, audios = d.audios + excluded.audios,
    seconds = d.seconds + excluded.seconds, credits = d.credits + excluded.credits,
    tasks = d.tasks + excluded.tasks, errors = d.errors + excluded.errors,
    durations = durations_add(d.durations, excluded.durations);
end $$;

-- The number of a wallet's first entry that was written at or after this time, found by binary search. Entries are
-- numbered without gaps. The clocks of processes may differ, so the caller allows for an hour.
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

-- Rebuilds the rollup of a user's day from tasks and receipts, and returns whether it differed. Hours before
-- p_hours_since are not kept. A day whose receipts or bodies are gone stays unchanged if it agrees with the ledger;
-- otherwise the ledger's surplus goes into a row without key, vendor and model.
create or replace function usage_rebuild(p_user uuid, p_day date, p_hours_since timestamptz) returns boolean
language plpgsql as $$
declare
  since constant timestamptz := p_day::timestamp at time zone 'UTC';
  until constant timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
  w wallets;
  former usage_sum[];
  former_hours usage_sum[];
  fresh usage_sum[];
  charged bigint;
  rest bigint;
  is_less boolean;
begin
  w := wallet_lock(p_user);
  if w.user_id is null then return false; end if;
  with ended as (
    select e.subject_id as id, e.kind, e.amount, e.created_at from wallet_entries e
    where e.user_id = p_user and e.kind in ('capture', 'release', 'late_charge') and e.created_at >= since and e.created_at < until
      and e.seq >= ledger_seq_at(p_user, w.entry_count, since - interval '1 hour')
      and e.seq < ledger_seq_at(p_user, w.entry_count, until + interval '1 hour')
  ), settled as (
    select e.at, t.api_key_id, coalesce(t.candidates -> t.candidate ->> 'vendor', t.vendor) as vendor,
      coalesce(m.share ->> 'model', t.candidates -> t.candidate ->> 'model', t.model) as model, t.sandbox,
      coalesce((m.share ->> 'captured')::bigint, t.captured) as captured,
      t.status = 'completed' or t.captured > 0 as is_counted, t.status = 'failed' as is_error, m.is_first, t.created_at,
      t.result_kind as kind, m.share as usage,
      jsonb_array_length(coalesce(t.result, '[]')) as items,
      case when jsonb_typeof(t.body -> 'duration') = 'number' then (t.body ->> 'duration')::float8 else 5 end as seconds,
      t.body = 'null' as is_erased
    from (select id, max(created_at) as at from ended group by id) e
    cross join lateral (select * from tasks o where o.id = e.id and o.status in ('completed', 'failed') offset 0) t
    cross join lateral usage_shares(t.usage) m
    union all
    select c.ended_at, c.api_key_id, c.vendor, c.model, c.sandbox, c.captured, c.outcome = 'settled',
      c.outcome <> 'settled', true, c.created_at, null, c.usage, 0, 0, false
    from calls c
    where c.user_id = p_user and c.ended_at >= since and c.ended_at < until
      and c.created_at >= since - interval '25 hours' and c.created_at < until + interval '1 hour'
  ), summed as (
    select date_trunc('hour', at, 'UTC') as hour, coalesce(api_key_id, '') as key, vendor, coalesce(model, '') as model,
      sandbox, count(*) filter (where is_counted and is_first) as requests,
      count(kind) filter (where is_counted and is_first) as tasks,
      count(*) filter (where is_error and is_first) as errors,
      durations_sum(durations_of(created_at, at)) filter (where is_counted and is_first) as durations,
      coalesce(sum((usage ->> 'inputTokens')::float8) filter (where is_counted), 0) as input,
      coalesce(sum((usage ->> 'cachedInputTokens')::float8) filter (where is_counted), 0) as cached,
      coalesce(sum((usage ->> 'outputTokens')::float8) filter (where is_counted), 0) as output,
      coalesce(sum(items) filter (where kind = 'images'), 0) as images,
      coalesce(sum(items) filter (where kind = 'videos'), 0) as videos,
      coalesce(sum(items) filter (where kind = 'audios'), 0) as audios,
      coalesce(sum(items * seconds) filter (where kind = 'videos'), 0) as seconds, sum(captured) as credits,
      bool_or(is_erased and is_counted) as is_erased
    from settled group by 1, 2, 3, 4, 5
  )
  select array_agg((p_user, hour, key, vendor, model, sandbox, requests, input, cached, output, images, videos, audios,
      seconds, credits, tasks, errors, durations)::usage_sum order by hour, key, vendor, model, sandbox),
    coalesce((select sum(amount) from ended where kind in ('capture', 'late_charge')), 0), coalesce(sum(credits), 0),
    coalesce(bool_or(is_erased), false)
  into fresh, charged, rest, is_less from summed;
  rest := charged - rest;
  select array_agg((d.user_id, since, d.api_key_id, d.vendor, d.model, d.sandbox, d.requests, d.input_tokens,
      d.input_cached_tokens, d.output_tokens, d.images, d.videos, d.audios, d.seconds, d.credits, d.tasks, d.errors,
      d.durations)::usage_sum order by d.api_key_id, d.vendor, d.model, d.sandbox)
  into former from usage_days d where d.user_id = p_user and d.day = p_day;
  -- Free calls have no ledger entries, so missing receipts of free calls show only in the number of requests.
  is_less := is_less or rest <> 0 or (select coalesce(sum(f.requests + f.errors), 0) from unnest(fresh) f)
    < (select sum(k.requests + k.errors) from unnest(former) k);
  if is_less and charged = (select sum(k.credits) from unnest(former) k) then return false; end if;
  if rest <> 0 then
    fresh := (p_user, since, '', '', '', false, 0, 0, 0, 0, 0, 0, 0, 0, rest, 0, 0, null)::usage_sum || fresh;
  end if;
  select array_agg((h.user_id, h.hour, h.api_key_id, h.vendor, h.model, h.sandbox, h.requests, h.input_tokens,
      h.input_cached_tokens, h.output_tokens, h.images, h.videos, h.audios, h.seconds, h.credits, h.tasks, h.errors,
      h.durations)::usage_sum order by h.hour, h.api_key_id, h.vendor, h.model, h.sandbox)
  into former_hours from usage_hours h
  where h.user_id = p_user and h.hour >= greatest(since, p_hours_since) and h.hour < until;
  if former is not distinct from usage_of_day(fresh, since)
    and former_hours is not distinct from (select array_agg(f) from unnest(fresh) f where f.at >= p_hours_since)
  then return false; end if;
  delete from usage_days d where d.user_id = p_user and d.day = p_day;
  delete from usage_hours h where h.user_id = p_user and h.hour >= since and h.hour < until;
  perform usage_add(fresh);
  delete from usage_hours h where h.user_id = p_user and h.hour >= since and h.hour < least(until, p_hours_since);
  return true;
end $$;

-- Sums up hours to the sums of their day.
create or replace function usage_of_day(p_used usage_sum[], p_since timestamptz) returns usage_sum[] language sql as $$
  select array_agg(o.s order by (o.s).api_key_id, (o.s).vendor, (o.s).model, (o.s).sandbox) from (
    select (u.user_id, p_since, u.api_key_id, u.vendor, u.model, u.sandbox, sum(u.requests), sum(u.input_tokens),
      sum(u.input_cached_tokens), sum(u.output_tokens), sum(u.images), sum(u.videos), sum(u.audios), sum(u.seconds),
      sum(u.credits), sum(u.tasks), sum(u.errors), durations_sum(u.durations))::usage_sum as s
    from unnest(p_used) u group by u.user_id, u.api_key_id, u.vendor, u.model, u.sandbox
  ) o
$$;
