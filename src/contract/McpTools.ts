import { Context, Schema } from "effect"
import * as Tool from "effect/ai/Tool"
import { Text } from "../catalog/bodies/Fields.ts"
import { Action } from "../catalog/PathSegment.ts"
import { Amount, PriceRule } from "../catalog/Price.ts"
import { CreditsFromString } from "../domain/Credits.ts"
import { DeliveryType } from "../domain/Event.ts"
import { DeliveryId, EndpointId, EventId, TaskId } from "../domain/Ids.ts"
import { idempotencyKeyCharactersMax } from "../domain/limits/Limits.ts"
import { mcpModelsDefault, mcpModelsMax, mcpWaitSecondsMax } from "../domain/limits/ShapeLimits.ts"
import { Metadata } from "../domain/task/Metadata.ts"
import { MediaKind, TaskAction, TaskStatus, Timestamp } from "../domain/task/Task.ts"
import { DeliveryStatus, FailureClass } from "../domain/Webhook.ts"
import { WalletView } from "./manage/WalletApi.ts"
import { MediaModelView } from "./ModelsApi.ts"

/** The tools of `/mcp`, as `tools/list` describes them. docs/reference/mcp.md#tools */

/** The hints of a tool that only reads data of the gateway. */
const readsOnly = Context.make(Tool.Readonly, true).pipe(
  Context.add(Tool.Destructive, false),
  Context.add(Tool.Idempotent, true),
  Context.add(Tool.OpenWorld, false)
)

/** The arguments with which tools name a model. */
const modelArguments = {
  model: Schema.String.annotate({
    description: "A model of list_models, such as alibaba/text-to-image-max"
  }),
  action: Schema.optionalKey(
    Action.annotate({ description: "Only where a model has both: generation or edit" })
  )
}

const ModelView = Schema.Struct({
  /** The name under which the other tools accept the model. */
  model: Schema.String,
  action: Action,
  result: MediaKind,
  sandbox: Schema.Boolean,
  /** In credits, per image, second or call; 100 credits are 1 US dollar. */
  price: PriceRule,
  deprecation: Schema.NullOr(Schema.String),
  sunset: Schema.NullOr(Schema.String),
  replacement: Schema.NullOr(Schema.String),
  /** The JSON Schema of `input`. */
  input_schema: Schema.Record(Schema.String, Schema.Json),
  media: MediaModelView.fields.media
})

export const listModels = Tool.make("list_models", {
  description:
    "Lists the image and video models that this key may use, each with the JSON Schema of its input, the rules of its media, and its price in credits (100 credits are 1 US dollar). Ask for one model by name, or page with next_cursor.",
  parameters: Schema.Struct({
    model: Schema.optionalKey(
      Schema.String.annotate({ description: "Only models whose name contains this text" })
    ),
    result: Schema.optionalKey(MediaKind.annotate({ description: "Only models that make these" })),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: mcpModelsMax })).annotate({
        description: `Models per page; default ${mcpModelsDefault}`
      })
    ),
    cursor: Schema.optionalKey(
      Schema.String.check(
        Schema.isPattern(/^[^/]+\/[^/]+\/(?:generation|edit)$/u, {
          expected: "next_cursor of the page before"
        })
      ).annotate({ description: "next_cursor of the page before" })
    )
  }),
  success: Schema.Struct({
    models: Schema.Array(ModelView),
    next_cursor: Schema.NullOr(Schema.String)
  })
})
  .annotate(Tool.Title, "List models")
  .annotateMerge(readsOnly)

const input = Schema.Record(Schema.String, Schema.Unknown).annotate({
  description:
    "The body of the model, described by input_schema of list_models. Media are URLs (https), data URIs or Base64"
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
  action: TaskAction,
  status: TaskStatus,
  /** Held while the task runs, captured when it has ended. */
  cost: CreditsFromString,
  /** Whether the simulator makes the results, not the vendor. */
  sandbox: Schema.Boolean,
  /** Where the HTTP API returns the task, with the same API key. */
  url: Schema.String,
  /** What to do next. */
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
    /**
     * The balance of the wallet when the task was created. This and the next two members are present only in the
     * response to a create.
     */
    balance: Schema.optionalKey(CreditsFromString),
    /** What is left of the API key's spend limit; null if it has none. */
    budget_remaining: Schema.optionalKey(Schema.NullOr(CreditsFromString)),
    /** Whether an earlier call created the task, so that nothing was bought now. */
    replayed: Schema.optionalKey(Schema.Boolean)
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
  /** Null if the vendor keeps the result. */
  media_type: Schema.NullOr(Schema.String),
  size: Schema.NullOr(Schema.Int),
  /** Whether the content of this tool result contains the image itself. */
  shown: Schema.Boolean
})

export const TaskOutput = Schema.Struct({
  ...taskFields,
  created_at: Timestamp,
  updated_at: Timestamp,
  error: Schema.NullOr(TaskFault),
  /** Present for a completed task. The links are valid for 24 hours. */
  results: Schema.Array(Result),
  metadata: Schema.optionalKey(Metadata)
})

export const getTask = Tool.make("get_task", {
  description: `Shows a task. With wait_seconds it responds as soon as the task has ended or the time is up. Completed images are returned as links, and also inline if they are small.`,
  parameters: Schema.Struct({
    task_id: TaskId,
    wait_seconds: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: mcpWaitSecondsMax })).annotate({
        description: `How long to wait for the end of the task, at most ${mcpWaitSecondsMax} seconds; default 0`
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

const Attempt = Schema.Struct({
  seq: Schema.Int,
  started_at: Timestamp,
  ended_at: Schema.NullOr(Timestamp),
  status: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass),
  detail: Schema.NullOr(Schema.String),
  /** The first characters of the receiver's response. This text is not the gateway's. */
  answer: Schema.NullOr(Schema.String)
})

export const Explained = Schema.Struct({
  delivery_id: DeliveryId,
  event_id: EventId,
  event_type: DeliveryType,
  task_id: Schema.NullOr(TaskId),
  endpoint_id: EndpointId,
  /** Or the URL of the task's own webhook, without its query. Null if the endpoint was deleted. */
  endpoint_url: Schema.NullOr(Schema.String),
  status: DeliveryStatus,
  created_at: Timestamp,
  /** The first characters of the delivery's body; empty if its event is no longer kept. */
  body: Schema.String,
  attempts: Schema.Array(Attempt),
  next_attempt_at: Schema.NullOr(Timestamp),
  next: Schema.String
})

export const explainDelivery = Tool.make("explain_delivery", {
  description:
    "Explains what happened to webhooks: what was sent when, what the receiver responded, and what happens next. Takes the id of a delivery (whd_…), of an event (evt_…) or of a task (a UUID).",
  parameters: Schema.Struct({
    id: Schema.String.annotate({ description: "The id of a delivery, an event or a task" })
  }),
  success: Schema.Struct({
    explanation: Schema.String,
    deliveries: Schema.Array(Explained)
  })
})
  .annotate(Tool.Title, "Explain a webhook delivery")
  .annotateMerge(readsOnly)

export const wallet = Tool.make("wallet", {
  description:
    "Shows the balance in credits (100 credits are 1 US dollar): what is available, settled and held by running tasks.",
  success: Schema.Struct(WalletView.fields)
})
  .annotate(Tool.Title, "Wallet")
  .annotateMerge(readsOnly)
