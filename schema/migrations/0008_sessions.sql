-- Users that may not use the service for now, and sessions of people: docs/reference/sessions.md.

alter table users
  add column disabled_at timestamptz,
  -- Raised with each change of the password and each disabling: sessions of an earlier number have ended.
  add column session_epoch integer not null default 0,
  -- Issuer and subject of the identity that signed in first (ADR 0174).
  add column oidc_subject text;
create unique index users_oidc_subject on users (oidc_subject) where oidc_subject is not null;

-- Of a disabled user: its keys are refused as revoked ones are.
alter table api_keys add column disabled_at timestamptz;

-- Sign-ins of browsers. `token_hash` is the SHA-256 of the cookie.
create table sessions (
  id text primary key,
  token_hash bytea not null unique,
  -- Null: the operator.
  user_id uuid references users on delete cascade,
  method text not null check (method in ('password', 'api_key', 'admin_token', 'link', 'oidc')),
  -- The key that was exchanged: the session ends with it.
  api_key_id text references api_keys on delete cascade,
  -- Of a user: `session_epoch` at the sign-in.
  epoch integer,
  -- Of the operator: a MAC of what makes somebody the operator (ADR 0172).
  operator_mac text,
  address text,
  created_at timestamptz not null,
  -- Written at most once a minute.
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  constraint sessions_of_user_or_operator check ((user_id is null) = (epoch is null)
    and (user_id is null) = (operator_mac is not null))
);
create index sessions_user on sessions (user_id, id desc);
create index sessions_expiry on sessions (expires_at);

-- One-time links; deleted when used. `token_hash` is the SHA-256 of the secret.
create table sign_in_links (
  token_hash bytea primary key,
  -- Null: the operator.
  user_id uuid references users on delete cascade,
  epoch integer,
  operator_mac text,
  expires_at timestamptz not null,
  constraint sign_in_links_of_user_or_operator check ((user_id is null) = (epoch is null)
    and (user_id is null) = (operator_mac is not null))
);
create index sign_in_links_expiry on sign_in_links (expires_at);

-- The key that pays for the inference of a user's sessions: nobody has its text (ADR 0175).
alter table api_keys add column is_console boolean not null default false;
create unique index api_keys_console on api_keys (user_id) where is_console and revoked_at is null;
