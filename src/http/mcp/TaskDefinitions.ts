import { Context, Schema } from "effect"
import * as Tool from "effect/ai/Tool"
import { Text } from "../../catalog/bodies/Fields.ts"
import { Action } from "../../catalog/CatalogEntry.ts"
import { Amount } from "../../catalog/Price.ts"
import { CreditsFromString } from "../../domain/Credits.ts"
import { TaskId } from "../../domain/Ids.ts"
import { idempotencyKeyCharactersMax } from "../../domain/Limits.ts"
import { Metadata } from "../../domain/Metadata.ts"
import { mcpWaitSecondsMax } from "../../domain/ShapeLimits.ts"
import { TaskStatus, Timestamp } from "../../domain/Task.ts"
import { modelArguments } from "./ModelTools.ts"
import { readsOnly } from "./Tools.ts"

/** The tools that price, buy, read and cancel. docs/reference/mcp.md#tools */

const input = Schema.Record(Schema.String, Schema.Unknown).annotate({
  description:
    "The body of the model, as input_schema of list_models says. Media are URLs (https), data URIs or Base64"
})

const given = { ...modelArguments, input }

export const quote = Tool.make("quote", {
  description:
    "Checks an input and says what the task would cost. Buys nothing. Every fault of the input is named.",
  parameters: Schema.Struct(given),
  success: Schema.Struct({
    model: Schema.String,
    amount: CreditsFromString,
    currency: Schema.Literal("credits")
  })
})
  .annotate(Tool.Title, "Quote a price")
  .annotateMerge(readsOnly)

const idempotency_key = Text.check(
  Schema.isNonEmpty(),
  Schema.isMaxLength(idempotencyKeyCharactersMax)
).annotate({
  description:
    "Names this purchase for 24 hours: the same key returns the same task. Without it the same model, input and metadata are the same purchase. Give a new key to buy the same once more, or to try a failed task again"
})

const taskFields = {
  task_id: TaskId,
  model: Schema.String,
  action: Action,
  status: TaskStatus,
  /** Held while it runs, captured when it has ended. */
  cost: CreditsFromString,
  /** The simulator makes it, not the vendor. */
  sandbox: Schema.Boolean,
  /** Where the HTTP API shows the task, with the same API key. */
  url: Schema.String,
  /** What to do now. */
  next: Schema.String
}

export const createTask = Tool.make("create_task", {
  description:
    "Buys images or a video: creates a task, holds its price, and returns at once. Then call get_task until its status is completed or failed. Calling again with the same arguments within 24 hours returns the same task and buys nothing.",
  parameters: Schema.Struct({
    ...given,
    metadata: Schema.optionalKey(
      Metadata.annotate({ description: "Up to 16 pairs of texts that are kept with the task" })
    ),
    idempotency_key: Schema.optionalKey(idempotency_key),
    max_cost: Schema.optionalKey(
      Amount.annotate({
        description: 'The most that it may cost, in credits, such as "7.50": else it is refused'
      })
    )
  }),
  success: Schema.Struct({
    ...taskFields,
    /** Of the wallet, when the task was created. */
    balance: CreditsFromString,
    /** What the spend limit of the API key leaves; null: it has none. */
    budget_remaining: Schema.NullOr(CreditsFromString),
    /** The task was created by an earlier call; nothing was bought now. */
    replayed: Schema.Boolean
  })
})
  .annotate(Tool.Title, "Create a task")
  .annotateMerge(
    Context.make(Tool.Readonly, false).pipe(
      Context.add(Tool.Destructive, false),
      Context.add(Tool.Idempotent, true),
      Context.add(Tool.OpenWorld, true)
    )
  )

const TaskFault = Schema.Struct({
  code: Schema.Int,
  title: Schema.String,
  detail: Schema.String,
  meaning: Schema.NullOr(Schema.String),
  remedy: Schema.NullOr(Schema.String)
})

const Result = Schema.Struct({
  url: Schema.String,
  /** null: it is kept by its vendor. */
  media_type: Schema.NullOr(Schema.String),
  size: Schema.NullOr(Schema.Int),
  /** Whether the content of this result has the image itself. */
  shown: Schema.Boolean
})

export const TaskOutput = Schema.Struct({
  ...taskFields,
  created_at: Timestamp,
  updated_at: Timestamp,
  error: Schema.NullOr(TaskFault),
  /** Of a completed task; their links are valid for 24 hours. */
  results: Schema.Array(Result),
  metadata: Schema.optionalKey(Metadata)
})

export const getTask = Tool.make("get_task", {
  description: `Shows a task. With wait_seconds it answers as soon as the task has ended, or when the time is over. Completed images come as links, and as pictures when they are small.`,
  parameters: Schema.Struct({
    task_id: TaskId,
    wait_seconds: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: mcpWaitSecondsMax })).annotate({
        description: `Waits so long for the end of the task, at most ${mcpWaitSecondsMax} seconds; 0 without it`
      })
    ),
    include_images: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "false: links only, no pictures" })
    )
  }),
  success: TaskOutput
})
  .annotate(Tool.Title, "Get a task")
  .annotateMerge(readsOnly)

export const cancelTask = Tool.make("cancel_task", {
  description:
    "Cancels a task that has not ended: it fails with code 4004 and its hold is released. A task that has ended is refused (2010).",
  parameters: Schema.Struct({ task_id: TaskId }),
  success: TaskOutput
})
  .annotate(Tool.Title, "Cancel a task")
  .annotateMerge(
    Context.make(Tool.Readonly, false).pipe(
      Context.add(Tool.Destructive, true),
      Context.add(Tool.Idempotent, true),
      Context.add(Tool.OpenWorld, true)
    )
  )
