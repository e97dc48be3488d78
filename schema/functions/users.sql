-- API keys and their limits (ADR 0160).

-- Takes one token from a bucket that holds p_capacity and refills evenly in p_seconds (ADR 0030). A fill time further
-- in the future was written by a fast clock; the bucket is then reset to fill from now on.
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

-- Finds a key by the hash of its secret, or of its secret before a rotation. If the key may be used for inference,
-- takes a token from its bucket and one from its user's bucket. A limit of 0 means no limit. If the key's limit
-- refuses, nothing is taken from the user's bucket. `limited` is the limit that refused, or else the one with the least
-- remaining; null if nothing was counted.
create or replace function inference_admit(
  p_hash bytea, p_per_minute integer, p_user_per_minute integer, p_now timestamptz,
  out k api_keys, out limited integer, out of_user boolean, out admitted boolean, out remaining integer,
  out reset_seconds integer
) returns setof record language plpgsql as $$
declare
  taken record;
  per_minute integer;
  user_per_minute integer;
begin
  select * into k from api_keys where key_hash = p_hash;
  if not found then
    select * into k from api_keys where previous_key_hash = p_hash;
    if not found then return; end if;
  end if;
  if k.revoked_at is null and k.disabled_at is null and (k.expires_at is null or k.expires_at > p_now)
    and 'inference' = any (k.scopes) and (k.key_hash = p_hash or k.previous_key_until > p_now) then
    -- The key's own limit applies if it is lower.
    per_minute := least(nullif(p_per_minute, 0), k.rate_limit_per_minute);
    if per_minute > 0 then
      select * into admitted, remaining, reset_seconds from bucket_take(k.id, per_minute, 60, p_now);
      limited := per_minute;
      of_user := false;
    end if;
    -- The user's own limit replaces the configured one.
    user_per_minute := coalesce(k.user_rate_limit_per_minute, p_user_per_minute);
    if user_per_minute > 0 and admitted is not false then
      select * into taken from bucket_take('user:' || k.user_id, user_per_minute, 60, p_now);
      if limited is null or not taken.admitted or taken.remaining < remaining then
        admitted := taken.admitted;
        remaining := taken.remaining;
        reset_seconds := taken.reset_seconds;
        limited := user_per_minute;
        of_user := true;
      end if;
    end if;
  end if;
  return next;
end $$;

-- Records the last use of these keys, at most once a minute.
create or replace function api_keys_touch(p_keys text[], p_now timestamptz) returns void language sql as $$
  update api_keys k set last_used_at = p_now
  where k.id = any (p_keys) and k.revoked_at is null
    and (k.last_used_at is null or k.last_used_at < p_now - interval '1 minute')
$$;

-- The end of the period that contains p_time; null for never.
create or replace function budget_period_end(p_reset text, p_time timestamptz) returns timestamptz
language sql stable as $$
  select (date_trunc(p.unit, p_time at time zone 'UTC') + ('1 ' || p.unit)::interval) at time zone 'UTC'
  from (select case p_reset when 'daily' then 'day' when 'weekly' then 'week' when 'monthly' then 'month' end as unit) p
$$;

-- Changes a key of the user: every field whose name is in p_fields, including nulls. Locks the wallet from which the
-- key spends, so that every later hold sees the limits. p_reset applies to the existing or new spend limit. If it is
-- null, an existing limit keeps its reset and a new one never resets. A new limit counts from now on; another amount
-- with the same `reset` keeps the count. Returns no row if there is no such key. `reserved`: a process has a
-- reservation for the key and may still draw on it under the old limits (ADR 0116). Null: p_reset was given without a
-- limit, and nothing was changed.
create or replace function api_key_update(
  p_user uuid, p_key text, p_fields text[], p_name text, p_limit bigint, p_reset text, p_models text[],
  p_per_minute integer, p_concurrent integer, p_expires timestamptz, p_now timestamptz
) returns table (reserved boolean) language plpgsql as $$
declare
  k api_keys;
  new_limit bigint;
  new_reset text;
begin
  perform wallet_lock(p_user);
  select * into k from api_keys a where a.id = p_key and a.user_id = p_user and a.revoked_at is null for update;
  if not found then return; end if;
  new_limit := case when 'spend_limit' = any (p_fields) then p_limit else k.spend_limit end;
  if new_limit is null and p_reset is not null then
    return next;
    return;
  end if;
  new_reset := case when new_limit is not null then coalesce(p_reset, k.spend_reset, 'never') end;
  update api_keys a set
      name = case when 'name' = any (p_fields) then p_name else a.name end,
      spend_limit = new_limit,
      spend_reset = new_reset,
      allowed_models = case when 'allowed_models' = any (p_fields) then p_models else a.allowed_models end,
      rate_limit_per_minute =
        case when 'rate_limit_per_minute' = any (p_fields) then p_per_minute else a.rate_limit_per_minute end,
      concurrent_tasks = case when 'concurrent_tasks' = any (p_fields) then p_concurrent else a.concurrent_tasks end,
      expires_at = case when 'expires_at' = any (p_fields) then p_expires else a.expires_at end
    where a.id = p_key;
  if new_reset is distinct from k.spend_reset and new_reset is not null then
    insert into key_budgets as b (api_key_id, epoch, since, spent, held) values (p_key, 1, p_now, 0, 0)
      on conflict (api_key_id) do update set epoch = b.epoch + 1, since = excluded.since, spent = 0, held = 0;
  end if;
  if p_limit is not null or p_concurrent is not null then
    update wallets w set key_limits = true where w.user_id = p_user and not w.key_limits;
  end if;
  reserved := exists (select from holds h where h.kind = 'reservation' and h.api_key_id = p_key);
  return next;
end $$;

-- Changes a user: every field whose name is in p_fields, including nulls. Locks the wallet, so that every later hold
-- sees the limits, and then the user, so that every later key has them too. Sessions end when the password changes and
-- when the user is disabled. Returns no row if there is no such user.
create or replace function user_update(
  p_user uuid, p_fields text[], p_email text, p_name text, p_password_hash text, p_disabled boolean,
  p_threshold bigint, p_per_minute integer, p_concurrent integer, p_now timestamptz
) returns table (
  id uuid, email text, name text, created_at timestamptz, disabled_at timestamptz, trigger_threshold bigint,
  rate_limit_per_minute integer, concurrent_tasks integer
) language plpgsql as $$
declare
  u users;
  w wallets;
begin
  w := wallet_lock(p_user);
  select * into u from users x where x.id = p_user and x.deleted_at is null for update;
  if not found then return; end if;
  if 'email' = any (p_fields) then u.email := p_email; end if;
  if 'name' = any (p_fields) then u.name := p_name; end if;
  if 'password' = any (p_fields) then
    u.password_hash := p_password_hash;
    u.session_epoch := u.session_epoch + 1;
  end if;
  if 'disabled' = any (p_fields) then
    u.disabled_at := case when p_disabled then coalesce(u.disabled_at, p_now) end;
    if p_disabled then u.session_epoch := u.session_epoch + 1; end if;
  end if;
  if 'rate_limit_per_minute' = any (p_fields) then u.rate_limit_per_minute := p_per_minute; end if;
  if 'concurrent_tasks' = any (p_fields) then u.concurrent_tasks := p_concurrent; end if;
  update users x set
      email = u.email, name = u.name, password_hash = u.password_hash, session_epoch = u.session_epoch,
      disabled_at = u.disabled_at, rate_limit_per_minute = u.rate_limit_per_minute,
      concurrent_tasks = u.concurrent_tasks
    where x.id = p_user;
  if p_fields && array['disabled', 'rate_limit_per_minute'] then
    -- A separate statement, so that it sees keys that waited for the lock of the user.
    update api_keys k set disabled_at = u.disabled_at, user_rate_limit_per_minute = u.rate_limit_per_minute
      where k.user_id = p_user;
  end if;
  if u.concurrent_tasks is not null and not w.key_limits then
    update wallets x set key_limits = true where x.user_id = p_user;
  end if;
  if 'trigger_threshold' = any (p_fields) then select * into w from wallet_threshold_set(p_user, p_threshold); end if;
  return query select u.id, u.email, u.name, u.created_at, u.disabled_at, w.trigger_threshold, u.rate_limit_per_minute,
    u.concurrent_tasks;
end $$;

-- Begins the due periods of these keys' budgets. The caller has locked the wallets. A slow clock does not end a period
-- a second time.
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

-- The number of spend limits with impossible counts. The held amount must equal the sum of the period's open holds. The
-- spent amount must be at most the key's charges since the day before the period (including usage whose key is no
-- longer known) and at least its charges from the fourth day on: a hold lives for a day, so all of those holds began in
-- the period.
create or replace function key_budgets_drift() returns bigint language sql stable as $$
  select count(*)
  from key_budgets b
  join api_keys k on k.id = b.api_key_id
  left join (
    select h.api_key_id, h.budget_epoch, sum(h.amount) as amount from holds h
    where h.budget_epoch is not null group by h.api_key_id, h.budget_epoch
  ) o on o.api_key_id = b.api_key_id and o.budget_epoch = b.epoch
  cross join lateral (
    select coalesce(sum(d.credits), 0) as most,
      coalesce(sum(d.credits) filter (where d.api_key_id = k.id and d.day >= (b.since at time zone 'UTC')::date + 3), 0)
        as least
    from usage_days d
    where d.user_id = k.user_id and d.day >= (b.since at time zone 'UTC')::date - 1 and d.api_key_id in (k.id, '')
  ) u
  where b.held <> coalesce(o.amount, 0) or b.spent > u.most or k.spend_limit is not null and b.spent < u.least
$$;

-- Deletes a user at once and permanently: keys and endpoints stop working, and the row no longer identifies anyone.
-- Locks the wallet, so that it waits for creates and calls that have read a key, and none is accepted afterwards.
-- Later passes erase the user's other data; the first is due now. A deleted user is also disabled, so that requests
-- admitted before get neither a key nor a session. Returns no row if there is no such user. Repeating it changes
-- nothing.
create or replace function user_delete(p_user uuid, p_now timestamptz)
returns table (id uuid, deleted_at timestamptz, erased_at timestamptz, reserved boolean) language plpgsql as $$
declare u users;
begin
  perform wallet_lock(p_user);
  select * into u from users x where x.id = p_user for update;
  if not found then return; end if;
  if u.deleted_at is null then
    update users x set email = x.id || '@deleted.invalid'::text, name = null, password_hash = null,
        oidc_subject = null, keeps_calls = false, session_epoch = x.session_epoch + 1, disabled_at = coalesce(x.disabled_at, p_now),
        deleted_at = p_now, erasure_due_at = p_now
      where x.id = p_user returning * into u;
    perform user_access_end(p_user, p_now);
  end if;
  return query select u.id, u.deleted_at, u.erased_at,
    exists (select from holds h where h.kind = 'reservation' and h.user_id = p_user);
end $$;

-- Sets whether the user's calls are kept. If not, deletes those that were kept. Null if there is no such user.
create or replace function user_calls_keep(p_user uuid, p_keep boolean, out kept boolean) language plpgsql as $$
begin
  update users u set keeps_calls = p_keep where u.id = p_user and u.deleted_at is null returning u.keeps_calls into kept;
  if kept is false then delete from call_contents c where c.user_id = p_user; end if;
end $$;

-- Ends all access of a deleted user: keys are revoked, sessions and endpoints deleted, and waiting deliveries
-- skipped.
create or replace function user_access_end(p_user uuid, p_now timestamptz) returns void language plpgsql as $$
declare
  ids text[];
  first_at timestamptz;
  last_at timestamptz;
begin
  update api_keys k set revoked_at = coalesce(k.revoked_at, p_now), name = '' where k.user_id = p_user;
  delete from sessions s where s.user_id = p_user;
  delete from sign_in_links l where l.user_id = p_user;
  delete from passkeys k where k.user_id = p_user;
  delete from call_contents c where c.user_id = p_user;
  update webhook_endpoints e set url = '', description = null, enabled = false, secret = '', secret_preview = '',
      previous_secret = null, previous_secret_until = null, deleted_at = coalesce(e.deleted_at, p_now)
    where e.user_id = p_user;
  delete from webhook_secrets s where s.user_id = p_user;
  with waiting as (
    delete from delivery_queue q
    where q.owner is null and q.endpoint_id in (select e.id from webhook_endpoints e where e.user_id = p_user)
    returning q.id, q.created_at
  )
  select array_agg(w.id), min(w.created_at), max(w.created_at) into ids, first_at, last_at from waiting w;
  if ids is not null then perform deliveries_skip(ids, first_at, last_at, p_now); end if;
end $$;

-- Erases the contents of a deleted user's tasks after p_after. Returns the last id, or null at the end. Leaves
-- unfinished tasks to a later pass.
create or replace function user_tasks_erase(p_user uuid, p_after uuid, p_limit integer) returns uuid language plpgsql as $$
declare ids uuid[];
begin
  ids := array(select t.id from tasks t where t.user_id = p_user and t.id > p_after order by t.id limit p_limit);
  update tasks t set body = 'null', result = null, metadata = null,
      error = case when t.error ? 'detail' then jsonb_set(t.error, '{detail}', '""') else t.error end
    where t.id = any (ids) and t.status in ('completed', 'failed')
      and (t.body <> 'null' or t.result is not null or t.metadata is not null or t.error ->> 'detail' <> '');
  update vendor_attempts a set failure = split_part(a.failure, ':', 1)
    where a.task_id = any (ids) and a.failure like '%:%';
  perform sandbox_handles_erase(ids);
  perform batch_names_erase(p_user, t.id) from tasks t where t.id = any (ids) and t.result_kind = 'batches';
  return ids[cardinality(ids)];
end $$;

-- The same for the delivery log: erases event bodies and responses of receivers.
create or replace function user_deliveries_erase(p_user uuid, p_after text, p_limit integer)
returns text language plpgsql as $$
declare ids text[];
begin
  ids := array(select d.id from deliveries d where d.user_id = p_user and d.id > p_after order by d.id limit p_limit);
  update events e set body = '', openai = null
    from deliveries d
    where d.id = any (ids) and e.id = d.event_id and e.created_at = d.event_created_at and e.body <> '';
  update deliveries d set webhook_url = '' where d.id = any (ids) and d.webhook_url <> '';
  update delivery_attempts a set answer = null, detail = null, remote_address = null
    where a.delivery_id = any (ids);
  return ids[cardinality(ids)];
end $$;

-- Erases the remaining data: the operator's notes in the ledger, stored responses, addresses and subjects in the audit
-- log. p_ends: requests admitted before the deletion have ended, so the erasure ends with this pass if all tasks have
-- ended; otherwise the next pass is due at p_next.
create or replace function user_erasure_end(p_user uuid, p_ends boolean, p_next timestamptz, p_now timestamptz)
returns void language plpgsql as $$
declare is_over boolean;
begin
  perform user_access_end(p_user, p_now);
  update wallet_entries w set note = null where w.user_id = p_user and w.subject_id is null and w.note is not null;
  delete from idempotency_keys i where i.user_id = p_user;
  delete from manage_idempotency_keys m where m.caller = p_user::text;
  update audit_entries a set ip_address = null,
      actor_id = case when a.actor_type <> 'access_token' then a.actor_id end
    where a.user_id = p_user and a.actor_user_id = p_user
      and (a.ip_address is not null or a.actor_type = 'access_token' and a.actor_id is not null);
  is_over := p_ends and not exists (
    select from runs r where r.api_key_id = any (array(select k.id from api_keys k where k.user_id = p_user)));
  update users u set erased_at = case when is_over then p_now end,
      erasure_due_at = case when not is_over then p_next end
    where u.id = p_user and u.erased_at is null;
end $$;
