-- Limits of a key, and answers of the management API kept for repeated requests.

-- Request rate of each key: a token bucket, shared by all processes (ADR 0030). Unlogged: after a
-- crash of the server every bucket is full again, and a request costs no flush to the disk.
create unlogged table request_buckets (
  api_key_id text primary key,
  tokens double precision not null,
  admitted boolean not null,
  filled_at timestamptz not null
) with (fillfactor = 50);

-- Finds a key by its hash and, when it may be used for inference, takes one request from its bucket.
-- The bucket holds a minute's requests and fills evenly. `admitted` is null when the key is not fit.
create function api_key_admit(
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
        filled_at = greatest(b.filled_at, p_now)
      returning b.tokens, b.admitted into tokens, admitted;
    remaining := case when admitted then greatest(0, floor(tokens + 0.000001)) else 0 end;
    reset_seconds := greatest(
      case when admitted then 0 else 1 end,
      ceil((case when admitted then p_per_minute else 1 end - tokens) * 60.0 / p_per_minute - 0.000001)
    );
  end if;
  return next;
end $$;

-- Answers of management POSTs by Idempotency-Key (contract 2). `answer` is encrypted, because it may
-- hold a key or a signing secret; null while the first request is under way.
create table manage_answers (
  caller text not null,
  key text not null,
  request_hash bytea not null,
  claim uuid not null,
  status integer,
  answer bytea,
  created_at timestamptz not null,
  primary key (caller, key)
);
create index manage_answers_age on manage_answers (created_at);
