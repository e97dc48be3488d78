-- Reconciling looks at the attempts of one account around one time; rows are written in order of time.
create index vendor_attempts_started on vendor_attempts using brin (started_at);

-- Turns of calls that a vendor limits, counted over all processes: when the next one is free.
create table vendor_turns (
  key text primary key,
  next_at timestamptz not null
);

-- Leases p_count turns, p_spacing apart. Answers when the first of them is.
create function vendor_turns_lease(p_key text, p_count integer, p_spacing interval, p_now timestamptz)
returns timestamptz language sql as $$
  insert into vendor_turns as t (key, next_at) values (p_key, p_now + p_count * p_spacing)
  on conflict (key) do update set next_at = greatest(t.next_at, p_now) + p_count * p_spacing
  returning next_at - p_count * p_spacing
$$;

-- Accounts and models at which creates are refused, because the vendor refused the service itself.
create table vendor_faults (
  key text primary key,
  until timestamptz not null
);
