-- When the client deleted a video (docs/reference/shapes.md#videos): its media are gone, and no list in OpenAI's shape
-- has it. The task and what was charged for it stay.
alter table tasks add column deleted_at timestamptz;
create index tasks_videos on tasks (user_id, id desc) where result_kind = 'videos' and deleted_at is null;
