-- Batches that a vendor runs for one task, and the receipts of their requests (docs/reference/vendor-batches.md).

-- Records what the vendor reports about a batch, on behalf of the owner of its task. Writes nothing if nothing has
-- changed.
create or replace function vendor_batch_note(
  p_task uuid, p_epoch integer, p_status text, p_completed integer, p_failed integer
) returns void language sql as $$
  insert into vendor_batches as b (task_id, status, completed, failed)
  select r.task_id, p_status, p_completed, p_failed from runs r
    where r.task_id = p_task and r.epoch = p_epoch and r.owner is not null
  on conflict (task_id) do update
    set status = excluded.status, completed = excluded.completed, failed = excluded.failed
    where (b.status, b.completed, b.failed) is distinct from (excluded.status, excluded.completed, excluded.failed)
$$;

-- Writes receipts for requests that have none, in the order of the arrays, and returns their total charge. The batch is
-- charged at most p_left: what its requests cost beyond that is not charged. Null if the caller no longer owns the
-- task. Locks the run, so that a later owner sees every receipt of an earlier one, and no receipt is written after the
-- task has ended.
create or replace function batch_receipts_add(
  p_task uuid, p_epoch integer, p_user uuid, p_left bigint, p_ids text[], p_custom_ids text[], p_models text[],
  p_outcomes text[], p_statuses integer[], p_costs bigint[], p_usages text[], p_requests text[],
  p_now timestamptz
) returns bigint language plpgsql set plan_cache_mode = force_generic_plan as $$
declare charged bigint;
begin
  perform from runs r where r.task_id = p_task and r.epoch = p_epoch and r.owner is not null for no key update;
  if not found then return null; end if;
  with given as (
    select x.*, coalesce(sum(x.cost) over (order by x.n rows between unbounded preceding and 1 preceding), 0) as before
    from (
      select distinct on (u.id) u.* from unnest(
        p_ids, p_custom_ids, p_models, p_outcomes, p_statuses, p_costs, p_usages, p_requests) with ordinality
        as u (id, custom_id, model, outcome, status, cost, usage, request, n)
      order by u.id, u.n
    ) x
    where not exists (select from batch_receipts b where b.user_id = p_user and b.id = x.id)
  ), added as (
    insert into batch_receipts
      (user_id, id, custom_id, model, outcome, http_status, captured, usage, request_id, created_at)
    select p_user, g.id, g.custom_id, g.model, g.outcome, g.status, least(g.cost, greatest(0, p_left - g.before)),
      g.usage::jsonb, g.request, p_now
    from given g
    returning captured
  )
  select coalesce(sum(a.captured), 0) into charged from added a;
  return charged;
end $$;

-- The totals of a task's receipts, by model.
create or replace function batch_receipts_sum(p_user uuid, p_task uuid) returns table (
  model text, captured bigint, settled integer, released integer, input float8, cached float8, written float8,
  output float8, reasoning float8, counted boolean
) language sql stable as $$
  select b.model, coalesce(sum(b.captured), 0)::bigint, (count(*) filter (where b.outcome = 'settled'))::integer,
    (count(*) filter (where b.outcome = 'released'))::integer,
    coalesce(sum((b.usage ->> 'inputTokens')::float8), 0), coalesce(sum((b.usage ->> 'cachedInputTokens')::float8), 0),
    coalesce(sum((b.usage ->> 'cacheWriteTokens')::float8), 0),
    coalesce(sum((b.usage ->> 'outputTokens')::float8), 0), coalesce(sum((b.usage ->> 'reasoningTokens')::float8), 0),
    coalesce(bool_or((b.usage ->> 'counted')::boolean), false)
  from batch_receipts b where b.user_id = p_user and b.id > p_task || '.' and b.id < p_task || '/'
  group by b.model
$$;

-- Deletes the receipts of a batch.
create or replace function batch_receipts_delete(p_user uuid, p_task uuid) returns void language sql as $$
  delete from batch_receipts b where b.user_id = p_user and b.id > p_task || '.' and b.id < p_task || '/'
$$;

-- Erases the client's data in the receipts of a batch: its names of the requests.
create or replace function batch_names_erase(p_user uuid, p_task uuid) returns void language sql as $$
  update batch_receipts b set custom_id = null
  where b.user_id = p_user and b.id > p_task || '.' and b.id < p_task || '/' and b.custom_id is not null
$$;

-- Expires the files with the requests of batches in Anthropic's form, which only the bodies of their tasks name.
create or replace function batch_requests_expire(p_tasks uuid[]) returns void language sql as $$
  update files f set expires_at = f.created_at
  from tasks t
  where t.id = any (p_tasks) and t.result_kind = 'batches' and t.vendor = 'anthropic'
    and f.id = t.body ->> 'input_file_id' and f.user_id = t.user_id and f.deleted_at is null
$$;
