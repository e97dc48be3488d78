-- The catalogs of all processes (docs/catalog.md#reload, ADR 0156).

-- Stores a catalog and adopts it, unless it is already adopted. Returns the latest adoption.
--
-- `p_start`: the calling process is starting with this catalog. It is adopted if no other process has had a heartbeat
-- since p_alive_since, or if it was never stored before. Otherwise the other processes have replaced it deliberately,
-- and the new process uses their catalog.
create or replace function catalog_adopt(
  p_hash text, p_text text, p_process text, p_start boolean, p_alive_since timestamptz, p_now timestamptz
) returns catalog_adoption language plpgsql as $$
declare
  catalog integer;
  is_new boolean;
  latest catalog_adoption;
begin
  -- Adoptions run one at a time, so that each sees the previous one.
  lock table catalog_adoptions in exclusive mode;
  select c.id into catalog from catalogs c where c.hash = p_hash;
  is_new := catalog is null;
  if is_new then
    insert into catalogs (hash, text, created_at) values (p_hash, p_text, p_now) returning id into catalog;
  end if;
  latest := catalog_adopted(0);
  if latest.catalog = catalog or (p_start and not is_new and latest.catalog is not null and exists (
    select from processes p where p.id <> p_process and p.heartbeat_at >= p_alive_since
  )) then
    return latest;
  end if;
  insert into catalog_adoptions (catalog_id, adopted_at, process_id)
    values (catalog, greatest(p_now, latest.adopted_at), p_process);
  return catalog_adopted(0);
end $$;

-- The latest adoption. Includes the text unless the caller already has it (p_known).
create or replace function catalog_adopted(p_known integer) returns catalog_adoption
language sql stable as $$
  select a.id, a.catalog_id, c.hash, case when a.id <> p_known then c.text end, a.adopted_at
  from catalog_adoptions a join catalogs c on c.id = a.catalog_id
  order by a.id desc limit 1
$$;
