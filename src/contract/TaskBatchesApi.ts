import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Text } from "../catalog/bodies/Fields.ts"
import { TaskBatchId, TaskId } from "../domain/Ids.ts"
import { batchTasksMax } from "../domain/limits/ShapeLimits.ts"
import { CreatedTaskBatch, TaskBatch } from "../domain/task/TaskBatch.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { requestHeaders, withHeaders } from "./Headers.ts"
import { pageOf, pageQuery } from "./Lists.ts"
import { problems } from "./Problems.ts"
import { TaskListItem } from "./TasksApi.ts"

/** A create at `/vendors/{vendor}/v1/{model}/{action}`. The rules of its model apply to its body. */
const BatchItem = Schema.Struct({
  vendor: Text,
  model: Text,
  action: Schema.optionalKey(
    Schema.Literals(["generation", "edit"]).annotate({ default: "generation" })
  ),
  body: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "The body of the create, with `metadata` if there is any"
  })
}).annotate({ identifier: "TaskBatchItem" })

export const NewTaskBatch = Schema.Struct({
  tasks: Schema.Array(BatchItem).check(
    Schema.isMinLength(1, { message: "Expected at least one task" }),
    Schema.isMaxLength(batchTasksMax, { message: `Expected at most ${batchTasksMax} tasks` })
  )
}).annotate({ identifier: "NewTaskBatch" })

export const TaskBatchPage = Schema.Struct({
  ...TaskBatch.fields,
  data: Schema.Array(TaskListItem).annotate({ description: "In the order of the request" }),
  next_cursor: Schema.NullOr(Schema.String)
}).annotate({ identifier: "TaskBatchPage" })

export const TaskBatchList = pageOf(TaskBatch)

export const batchPageQuery = Schema.Struct(pageQuery(TaskId))
export const batchListQuery = Schema.Struct(pageQuery(TaskBatchId))

const params = { id: TaskBatchId.annotate({ description: "The id that create returned" }) }
const reads = [401, 403, 404, 405, 429, 500, 503]

export const createTaskBatch = HttpApiEndpoint.post("createTaskBatch", "/manage/v1/task-batches", {
  headers: {
    "Idempotency-Key": requestHeaders["Idempotency-Key"],
    "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"]
  },
  payload: NewTaskBatch,
  success: withHeaders(CreatedTaskBatch.pipe(HttpApiSchema.status(202)), [
    "X-Service-Cost",
    "X-Service-Balance",
    "X-Service-Budget-Remaining",
    "Idempotency-Replayed"
  ]),
  error: problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429, 431, 500, 503)
}).annotateMerge(
  documented({
    summary: "Create up to 1,000 tasks of any models: all, or none",
    description:
      "Each task has its own hold and events; `task_batch.completed` follows when all have ended",
    example: {
      tasks: [
        { vendor: "alibaba", model: "text-to-image-max", body: { prompt: "A lighthouse at dawn" } },
        { vendor: "alibaba", model: "text-to-image-max", body: { prompt: "A lighthouse at dusk" } }
      ]
    },
    responses: { 202: { description: "All tasks were accepted" } }
  })
)

export const listTaskBatches = HttpApiEndpoint.get("listTaskBatches", "/manage/v1/task-batches", {
  query: batchListQuery,
  success: TaskBatchList,
  error: problems(400, ...reads)
}).annotateMerge(
  documented({
    summary: "List batches, newest first",
    responses: { 200: { description: "A page" } }
  })
)

export const getTaskBatch = HttpApiEndpoint.get("getTaskBatch", "/manage/v1/task-batches/:id", {
  params,
  query: batchPageQuery,
  success: TaskBatchPage,
  error: problems(400, ...reads)
}).annotateMerge(
  documented({
    summary: "Get a batch: its counts, its money and a page of its tasks",
    responses: { 200: { description: "The batch" } }
  })
)

export const cancelTaskBatch = HttpApiEndpoint.post(
  "cancelTaskBatch",
  "/manage/v1/task-batches/:id/cancel",
  { params, success: TaskBatch, error: problems(...reads, 409) }
).annotateMerge(
  documented({
    summary: "Cancel the tasks of a batch that have not ended",
    description: "Each fails with code 4004 and its hold is released",
    responses: { 200: { description: "The batch, with its cancelled tasks" } }
  })
)

/** Many creates in one request. docs/reference/batches.md */
export class TaskBatchesApi extends HttpApiGroup.make("taskBatches", { topLevel: true })
  .add(createTaskBatch, listTaskBatches, getTaskBatch, cancelTaskBatch)
  .middleware(InferenceKey) {}
