-- The audit log: one row for each write through the management API, in the transaction of the write
-- (docs/reference/audit.md). In month partitions, named by their first day (ADR 0168).
create table audit_entries (
  id text not null,
  created_at timestamptz not null,
  -- The operation, as OpenAPI names it.
  type text not null,
  actor_type text not null check (actor_type in ('operator', 'api_key', 'session')),
  -- The key or the session; null for the operator's token.
  actor_id text,
  actor_user_id uuid,
  -- The only column that may change: it is erased with its user.
  ip_address text,
  -- Whose data were changed or read.
  user_id uuid,
  resource_id text,
  -- Fields of the request; secrets and personal data as "[hidden]".
  changes jsonb not null,
  trace_id text,
  primary key (id, created_at)
) partition by range (created_at);
create table audit_entries_default partition of audit_entries default;
create index audit_entries_user on audit_entries (user_id, id desc);

-- Raises GW001, save for the erasure of an address.
create function forbid_audit_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and new.ip_address is null
    and to_jsonb(new) - 'ip_address' = to_jsonb(old) - 'ip_address' then
    return new;
  end if;
  raise exception 'audit entries are never changed' using errcode = 'GW001';
end $$;
create trigger audit_entries_never_changed before update or delete on audit_entries
  for each row execute function forbid_audit_change();
create trigger audit_entries_never_truncated before truncate on audit_entries
  for each statement execute function forbid_change();
create trigger audit_entries_never_truncated before truncate on audit_entries_default
  for each statement execute function forbid_change();

-- A user that was deleted, and when the personal data were gone too (docs/reference/privacy.md#deletion-of-a-user).
alter table users
  add column deleted_at timestamptz,
  add column erased_at timestamptz,
  -- When the next pass of the erasure is due; null when there is none.
  add column erasure_due_at timestamptz;
create index users_to_erase on users (erasure_due_at) where erasure_due_at is not null;

-- Raises GW001, save for the erasure of the operator's words: the entry itself never changes.
create function forbid_entry_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.subject_id is null and new.note is null
    and to_jsonb(new) - 'note' = to_jsonb(old) - 'note' then
    return new;
  end if;
  raise exception '% rows are never changed', tg_table_name using errcode = 'GW001';
end $$;
drop trigger wallet_entries_never_changed on wallet_entries;
create trigger wallet_entries_never_changed before update or delete on wallet_entries
  for each row execute function forbid_entry_change();

-- Up to which task an hourly job has come, so that it does not read from the start each time.
create table retention_marks (
  name text primary key,
  task_id uuid not null
);
