-- The vendor account that keeps what the calls of a key have made there: stored responses, files, caches.
-- A provider with one account needs no row (ADR 0134).
create table account_affinities (
  api_key_id text not null references api_keys on delete cascade,
  provider text not null,
  account_id text not null,
  primary key (api_key_id, provider)
);
