-- When a process has begun to ask the vendor to cancel the job, so that no other process asks too.
alter table vendor_attempts add column cancel_asked_at timestamptz;
