-- What a clock that was ahead has left behind holds nothing up.

-- Finds a key by its hash and, when it may be used for inference, takes one request from its bucket.
-- The bucket holds a minute's requests and fills evenly. `admitted` is null when the key is not fit.
-- A bucket of the future was filled by a clock that was ahead: it fills from now on.
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

-- Leases p_count turns, p_spacing apart. Answers when the first of them is. Processes lease shortly
-- before they use: turns far ahead were leased by a clock that was ahead, and hold up nobody.
create or replace function vendor_turns_lease(p_key text, p_count integer, p_spacing interval, p_now timestamptz)
returns timestamptz language sql as $$
  insert into vendor_turns as t (key, next_at) values (p_key, p_now + p_count * p_spacing)
  on conflict (key) do update set next_at = p_count * p_spacing + case
    when t.next_at > p_now + greatest(interval '1 minute', 100 * p_spacing) then p_now
    else greatest(t.next_at, p_now) end
  returning next_at - p_count * p_spacing
$$;
