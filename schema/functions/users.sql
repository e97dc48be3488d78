-- API keys.

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
