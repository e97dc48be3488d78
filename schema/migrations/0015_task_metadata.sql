-- What the client has attached to a task (docs/reference/tasks.md#metadata). `json`, because it is returned as it was
-- given, members in their order. Null: nothing was given.
alter table tasks add column metadata json;
