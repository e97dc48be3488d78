-- Tasks of an alias (docs/reference/aliases.md): `vendor` and `model` are what was asked for, `candidates` the models
-- that may do it, in the order in which they are tried, each with its price and why it was passed over, and
-- `candidate` the place of the one that the task is at. Null: the model itself was asked for.
alter table tasks
  add column candidates jsonb,
  add column candidate integer;
-- What a process has to know to take the task's steps (ADR 0225): 1: catalogs with aliases. Processes that know less do
-- not see it.
alter table runs add column level smallint not null default 0;
-- The receipt of a call of an alias: its name, and the models that were passed over.
alter table calls add column alias jsonb;
