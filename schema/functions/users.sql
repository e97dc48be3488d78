-- API keys, and what limits a single key (ADR 0160).

-- Takes one token from a bucket that contains p_capacity and fills evenly in p_seconds (ADR 0030). A bucket that was
-- filled further in the future than that was filled by a clock that was ahead: it fills from now on.
create or replace function bucket_take(
  p_bucket text, p_capacity integer, p_seconds double precision, p_now timestamptz,
  out admitted boolean, out remaining integer, out reset_seconds integer
) language plpgsql as $$
declare tokens double precision;
begin
  insert into request_buckets as b (api_key_id, tokens, admitted, filled_at)
    values (p_bucket, p_capacity - 1, true, p_now)
    on conflict (api_key_id) do update set
      (tokens, admitted) = (
        select f.filled - case when f.filled >= 0.999999 then 1 else 0 end, f.filled >= 0.999999
        from (select least(
          p_capacity, b.tokens + greatest(0, extract(epoch from p_now - b.filled_at)) * p_capacity / p_seconds
        )::double precision as filled) f
      ),
      filled_at = case when b.filled_at > p_now + make_interval(secs => p_seconds) then p_now
        else greatest(b.filled_at, p_now) end
    returning b.tokens, b.admitted into tokens, admitted;
  remaining := case when admitted then greatest(0, floor(tokens + 0.000001)) else 0 end;
  reset_seconds := greatest(
    case when admitted then 0 else 1 end,
    ceil((case when admitted then p_capacity else 1 end - tokens) * p_seconds / p_capacity - 0.000001)
  );
end $$;

-- Finds a key by its hash and, when it may be used for inference, takes a token from its bucket, and one from its
-- user's. 0: there is no such limit. A refusal for the key takes nothing from the user. `limited` is the limit that
-- refused, or of which least remains; null when nothing was counted.
create or replace function inference_admit(
  p_hash bytea, p_per_minute integer, p_user_per_minute integer, p_now timestamptz,
  out k api_keys, out limited integer, out of_user boolean, out admitted boolean, out remaining integer,
  out reset_seconds integer
) returns setof record language plpgsql as $$
declare
  taken record;
  per_minute integer;
begin
  select * into k from api_keys where key_hash = p_hash;
  if not found then return; end if;
  if k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
    and 'inference' = any (k.scopes) then
    -- The key's own limit, where it is the lower one.
    per_minute := least(nullif(p_per_minute, 0), k.rate_limit_per_minute);
    if per_minute > 0 then
      select * into admitted, remaining, reset_seconds from bucket_take(k.id, per_minute, 60, p_now);
      limited := per_minute;
      of_user := false;
    end if;
    if p_user_per_minute > 0 and admitted is not false then
      select * into taken from bucket_take('user:' || k.user_id, p_user_per_minute, 60, p_now);
      if limited is null or not taken.admitted or taken.remaining < remaining then
        admitted := taken.admitted;
        remaining := taken.remaining;
        reset_seconds := taken.reset_seconds;
        limited := p_user_per_minute;
        of_user := true;
      end if;
    end if;
  end if;
  return next;
end $$;

-- Kept for processes of the release before.
-- Finds a key by its hash and, when it may be used for inference, takes one token from its bucket (ADR 0030).
-- The bucket contains the requests of one minute and fills evenly. `admitted` is null when the key may not be
-- used. A bucket that was filled more than a minute in the future was filled by a clock that was ahead: it
-- fills from now on.
create or replace function api_key_admit(
  p_hash bytea, p_per_minute integer, p_now timestamptz,
  out k api_keys, out admitted boolean, out remaining integer, out reset_seconds integer
) returns setof record language plpgsql as $$
declare tokens double precision;
begin
  select * into k from api_keys where key_hash = p_hash;
  if not found then return; end if;
  if k.revoked_at is null and (k.expires_at is null or k.expires_at > p_now)
    and 'inference' = any (k.scopes) then
    insert into request_buckets as b (api_key_id, tokens, admitted, filled_at)
      values (k.id, p_per_minute - 1, true, p_now)
      on conflict (api_key_id) do update set
        (tokens, admitted) = (
          select f.filled - case when f.filled >= 0.999999 then 1 else 0 end, f.filled >= 0.999999
          from (select least(
            p_per_minute,
            b.tokens + greatest(0, extract(epoch from p_now - b.filled_at)) * p_per_minute / 60.0
          )::double precision as filled) f
        ),
        filled_at = case when b.filled_at > p_now + interval '1 minute' then p_now
          else greatest(b.filled_at, p_now) end
      returning b.tokens, b.admitted into tokens, admitted;
    remaining := case when admitted then greatest(0, floor(tokens + 0.000001)) else 0 end;
    reset_seconds := greatest(
      case when admitted then 0 else 1 end,
      ceil((case when admitted then p_per_minute else 1 end - tokens) * 60.0 / p_per_minute - 0.000001)
    );
  end if;
  return next;
end $$;

-- Writes when these keys were last used, at most once a minute.
create or replace function api_keys_touch(p_keys text[], p_now timestamptz) returns void language sql as $$
  update api_keys k set last_used_at = p_now
  where k.id = any (p_keys) and k.revoked_at is null
    and (k.last_used_at is null or k.last_used_at < p_now - interval '1 minute')
$$;

-- When the period that contains p_time ends; null: never.
create or replace function budget_period_end(p_reset text, p_time timestamptz) returns timestamptz
language sql stable as $$
  select (date_trunc(p.unit, p_time at time zone 'UTC') + ('1 ' || p.unit)::interval) at time zone 'UTC'
  from (select case p_reset when 'daily' then 'day' when 'weekly' then 'week' when 'monthly' then 'month' end as unit) p
$$;

-- Changes a key of the user: each field whose name is in p_fields, null included. Locks the wallet that the key
-- spends, so that every later hold sees the limits. A new limit counts from now on; another amount for the same
-- `reset` keeps what was counted. Returns no row when there is no such key. `reserved`: a process has a
-- reservation for the key and may draw on it as it was before (ADR 0116).
create or replace function api_key_update(
  p_user uuid, p_key text, p_fields text[], p_name text, p_limit bigint, p_reset text, p_models text[],
  p_per_minute integer, p_concurrent integer, p_expires timestamptz, p_now timestamptz
) returns table (reserved boolean) language plpgsql as $$
declare
  k api_keys;
  counts_anew boolean;
begin
  perform wallet_lock(p_user);
  select * into k from api_keys a where a.id = p_key and a.user_id = p_user and a.revoked_at is null for update;
  if not found then return; end if;
  counts_anew := 'spend_limit' = any (p_fields) and p_reset is distinct from k.spend_reset;
  update api_keys a set
      name = case when 'name' = any (p_fields) then p_name else a.name end,
      spend_limit = case when 'spend_limit' = any (p_fields) then p_limit else a.spend_limit end,
      spend_reset = case when 'spend_limit' = any (p_fields) then p_reset else a.spend_reset end,
      allowed_models = case when 'allowed_models' = any (p_fields) then p_models else a.allowed_models end,
      rate_limit_per_minute =
        case when 'rate_limit_per_minute' = any (p_fields) then p_per_minute else a.rate_limit_per_minute end,
      concurrent_tasks = case when 'concurrent_tasks' = any (p_fields) then p_concurrent else a.concurrent_tasks end,
      expires_at = case when 'expires_at' = any (p_fields) then p_expires else a.expires_at end
    where a.id = p_key;
  if counts_anew and p_reset is not null then
    insert into key_budgets as b (api_key_id, epoch, since, spent, held) values (p_key, 1, p_now, 0, 0)
      on conflict (api_key_id) do update set epoch = b.epoch + 1, since = excluded.since, spent = 0, held = 0;
  end if;
  if p_limit is not null or p_concurrent is not null then
    update wallets w set key_limits = true where w.user_id = p_user and not w.key_limits;
  end if;
  reserved := exists (select from holds h where h.kind = 'reservation' and h.api_key_id = p_key);
  return next;
end $$;

-- Begins the periods of these keys' budgets that are due. The caller has locked the wallets. A clock that is behind
-- does not end a period again.
create or replace function key_budgets_renew(p_keys text[], p_now timestamptz) returns void language sql as $$
  update key_budgets b set epoch = b.epoch + 1, since = p_now, spent = 0, held = 0
  from api_keys k
  where b.api_key_id = any (p_keys) and k.id = b.api_key_id and budget_period_end(k.spend_reset, b.since) <= p_now
$$;

-- Counts the end of a hold in the period in which it began, if that is still the current one.
create or replace function key_budget_settle(h holds, p_captured bigint) returns void language sql as $$
  update key_budgets b set held = b.held - h.amount, spent = b.spent + p_captured
  where b.api_key_id = h.api_key_id and b.epoch = h.budget_epoch
$$;
