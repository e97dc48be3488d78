-- API keys.

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
declare taken record;
begin
  select * into k from api_keys where key_hash = p_hash;
  if not found then return; end if;
  if k.revoked_at is null and k.disabled_at is null and (k.expires_at is null or k.expires_at > p_now)
    and 'inference' = any (k.scopes) then
    if p_per_minute > 0 then
      select * into admitted, remaining, reset_seconds from bucket_take(k.id, p_per_minute, 60, p_now);
      limited := p_per_minute;
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
  if k.revoked_at is null and k.disabled_at is null and (k.expires_at is null or k.expires_at > p_now)
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
