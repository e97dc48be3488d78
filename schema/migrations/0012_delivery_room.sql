-- The sliding minute of an endpoint over several processes: `delivery_room`, in 0015. ADR 0104.

-- When a process went of itself; its row stays a while, for its attempts count on in the window.
alter table processes add column left_at timestamptz;
