-- Catalogs by hash, with their whole text: tasks, holds and receipts name the one that they were priced by
-- (docs/catalog.md#reload, ADR 0156). A catalog never changes and is never deleted.
create table catalogs (
  id integer primary key generated always as identity,
  -- SHA-256 of the text, in hex.
  hash text not null unique,
  text text not null,
  created_at timestamptz not null
);
create trigger catalogs_never_changed before update or delete on catalogs
  for each row execute function forbid_change();
create trigger catalogs_never_truncated before truncate on catalogs
  for each statement execute function forbid_change();

-- When which catalog was adopted by all processes. The latest row counts.
create table catalog_adoptions (
  id integer primary key generated always as identity,
  catalog_id integer not null references catalogs,
  adopted_at timestamptz not null,
  -- The process that read it.
  process_id text not null
);
create index catalog_adoptions_time on catalog_adoptions (adopted_at, id);

-- Null: from before this migration.
alter table tasks add column catalog_id integer;
alter table calls add column catalog_id integer;

-- The latest adoption.
create type catalog_adoption as (
  -- The number of the adoption, and of its catalog.
  adoption integer,
  catalog integer,
  hash text,
  -- Null for a caller that has this catalog.
  text text,
  adopted_at timestamptz
);

-- Vendor accounts that get no new work (docs/reference/vendors.md#draining-an-account).
create table account_drains (
  account_id text primary key,
  since timestamptz not null
);
