-- Stored media, and the total bytes of each user's inputs
-- (docs/reference/keys-and-limits.md#kept-inputs).

-- Adds rows of stored media, given as one array per column; existing rows stay unchanged. Inputs count for their user.
-- Returns the ids of inputs that were not added because their user would exceed p_bytes_max bytes. Counters are locked
-- in order of user.
create or replace function artifacts_add(
  p_ids text[], p_users uuid[], p_tasks uuid[], p_roles text[], p_mimes text[], p_bytes bigint[], p_hashes bytea[],
  p_created timestamptz[], p_expires timestamptz[], p_bytes_max bigint[]
) returns setof text language plpgsql as $$
declare r record;
begin
  for r in
    select * from unnest(p_ids, p_users, p_tasks, p_roles, p_mimes, p_bytes, p_hashes, p_created, p_expires, p_bytes_max)
      with ordinality as x (id, user_id, task_id, role, mime, bytes, sha256, created_at, expires_at, bytes_max, n)
    order by x.user_id, x.n
  loop
    insert into artifacts as a (id, user_id, task_id, role, mime, bytes, sha256, created_at, expires_at)
      values (r.id, r.user_id, r.task_id, r.role, r.mime, r.bytes, r.sha256, r.created_at, r.expires_at)
      on conflict (id) do nothing;
    continue when not found or r.role <> 'input';
    insert into kept_inputs as k (user_id, bytes)
      select r.user_id, r.bytes where r.bytes <= r.bytes_max
      on conflict (user_id) do update set bytes = k.bytes + r.bytes where k.bytes + r.bytes <= r.bytes_max;
    if not found then
      delete from artifacts a where a.id = r.id;
      return next r.id;
    end if;
  end loop;
end $$;

-- Removes rows whose bytes were removed.
create or replace function artifacts_remove(p_ids text[]) returns void language plpgsql as $$
declare r record;
begin
  for r in
    with gone as (delete from artifacts a where a.id = any (p_ids) returning a.user_id, a.role, a.bytes)
    select g.user_id, sum(g.bytes) as bytes from gone g where g.role = 'input' group by g.user_id order by g.user_id
  loop
    update kept_inputs k set bytes = greatest(0, k.bytes - r.bytes) where k.user_id = r.user_id;
  end loop;
end $$;

-- Adds a file for a user, unless the user would then have more than p_bytes_max bytes or p_files_max files. Returns
-- whether the file was added. Files of one user are added one at a time. Adding the same file again replaces its row.
create or replace function file_add(
  p_id text, p_user uuid, p_purpose text, p_filename text, p_bytes bigint, p_created timestamptz, p_expires timestamptz,
  p_bytes_max bigint, p_files_max bigint
) returns boolean language plpgsql as $$
declare kept record;
begin
  perform from users u where u.id = p_user and u.deleted_at is null for no key update;
  if not found then return false; end if;
  select coalesce(sum(f.bytes), 0) as bytes, count(*) as files into kept from files f
    where f.user_id = p_user and f.id <> p_id;
  if kept.bytes + p_bytes > p_bytes_max or kept.files >= p_files_max then return false; end if;
  insert into files as f (id, user_id, purpose, filename, bytes, created_at, expires_at)
    values (p_id, p_user, p_purpose, p_filename, p_bytes, p_created, p_expires)
    on conflict (id) do update set bytes = excluded.bytes;
  return true;
end $$;

-- Files whose removal is due and that no unfinished batch reads.
create or replace function files_due(p_now timestamptz, p_user uuid, p_limit integer) returns setof text
language sql stable as $$
  select f.id from files f
  where f.expires_at <= p_now and (p_user is null or f.user_id = p_user)
    and not exists (
      select from tasks t where t.user_id = f.user_id and t.result_kind = 'batches' and t.deleted_at is null
        and t.status in ('pending', 'processing') and t.body ->> 'input_file_id' = f.id)
  order by f.expires_at limit p_limit
$$;
