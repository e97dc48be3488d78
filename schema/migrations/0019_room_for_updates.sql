-- A new page of tasks is filled to a half, so that the updates of its tasks (begun, ended, body removed) find room in it
-- and write no index again (ADR 0241). Pages that are full stay so.
alter table tasks set (fillfactor = 50);
