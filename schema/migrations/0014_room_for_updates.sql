-- A task is inserted and then updated twice. With half of each page free the new version lies beside the old one, and
-- none of its six indexes is written again, whose pages are the deeper and the more scattered the more tasks are kept.
alter table tasks set (fillfactor = 50);
