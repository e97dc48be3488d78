-- How many of `requests` were completed tasks: the others were settled calls (ADR 0247). Before, a row had the results
-- of tasks or the tokens of calls, unless a catalog file gave one name to models of both kinds.
alter table usage_days add column tasks bigint not null default 0;
update usage_days set tasks = requests where images + videos + audios > 0;
