import { Array as Arr, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { GivenMetadata, GivenWebhook } from "../catalog/bodies/Attachments.ts"
import { bodies, Label } from "../catalog/bodies/Bodies.ts"
import { examples } from "../catalog/bodies/Examples.ts"
import { modelPath } from "../catalog/CatalogContent.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { requestSchemaOf } from "../catalog/jobs/DescribedBody.ts"
import type { Action } from "../catalog/PathSegment.ts"
import { CreditsFromString } from "../domain/Credits.ts"
import { TaskId } from "../domain/Ids.ts"
import { SkipReason } from "../domain/task/Candidate.ts"
import { TaskResult, Timestamp } from "../domain/task/Task.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { endingHeaders, modelHeaders, requestHeaders, withHeaders } from "./Headers.ts"
import { flagQuery } from "./Lists.ts"
import { problems } from "./Problems.ts"

const times = { created_at: Timestamp, updated_at: Timestamp }

/** The response to a create of `/generation`. docs/reference/tasks.md#create */
export const CreatedTask = Schema.Struct({
  task_info: Schema.Struct({ id: TaskId, ...times })
}).annotate({ identifier: "CreatedTask" })

/** The response to a create of `/edit`. */
export const CreatedEdit = Schema.Struct({
  task_info: Schema.Struct({ id: TaskId, status: Schema.Literal("pending"), ...times })
}).annotate({ identifier: "CreatedEdit" })

/** The response to a create with `dry_run=true`. */
export const Quote = Schema.Struct({
  quote: Schema.Struct({
    amount: CreditsFromString,
    currency: Schema.Literal("credits"),
    candidates: Schema.optionalKey(
      Schema.Array(
        Schema.Struct({
          vendor: Schema.String,
          model: Schema.String,
          amount: Schema.NullOr(CreditsFromString),
          skipped: Schema.NullOr(SkipReason)
        })
      ).annotate({
        description: "Only for an alias: its models. The amount is that of the most expensive one"
      })
    )
  })
}).annotate({ identifier: "Quote" })

const exampleTask = {
  id: "01a1fde8-21f4-7d82-8c09-ff1738b15d2e",
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z"
}

const heldHeaders = [
  "X-Service-Cost",
  "X-Service-Balance",
  "X-Service-Budget-Remaining",
  "Idempotency-Replayed",
  "Preference-Applied",
  ...endingHeaders
] as const

const taskHeaders = ["ETag", "X-Service-Cost", ...modelHeaders, ...endingHeaders] as const

interface Routes<Path extends `/${string}`, Body extends Schema.Top> {
  readonly path: Path
  readonly action: Action
  /** The operation ids. */
  readonly nameOf: (verb: "create" | "get" | "cancel") => string
  readonly model: string
  readonly body: Body
  readonly example: unknown
  /** The name of the result array. */
  readonly result: string
}

/** Create, get and cancel at a path. docs/reference/tasks.md#paths */
const endpointsOf = <const Path extends `/${string}`, Body extends Schema.Top>({
  action,
  body,
  example,
  model,
  nameOf,
  path,
  result
}: Routes<Path, Body>) => {
  const created = action === "edit" ? CreatedEdit : CreatedTask
  const pending = action === "edit" ? { status: "pending" } : {}
  return {
    create: HttpApiEndpoint.post(nameOf("create"), path, {
      query: {
        dry_run: flagQuery("Only checks and prices: no task, no hold, no event")
      },
      headers: {
        "Idempotency-Key": requestHeaders["Idempotency-Key"],
        Prefer: requestHeaders.Prefer,
        "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"]
      },
      payload: body,
      success: [
        // `created`, the schema of the 202, is in the union because some generators use the first success for all
        // statuses
        withHeaders(Schema.Union([Quote, TaskResult, created]), [...heldHeaders, ...taskHeaders]),
        withHeaders(created.pipe(HttpApiSchema.status(202)), heldHeaders)
      ],
      error: problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429, 431, 500, 503)
    }).annotateMerge(
      documented({
        summary: `Create a task of ${model}`,
        description:
          "Returns at once, or waits with `Prefer: wait=N`; poll the task's own path, or wait for the webhook",
        example,
        responses: {
          200: {
            description:
              "With `dry_run=true` the price; with `Prefer: wait=N` the task, if it has ended",
            example: { quote: { amount: "7.50", currency: "credits" } }
          },
          202: {
            description: "The task was accepted",
            example: { task_info: { ...exampleTask, ...pending } }
          }
        }
      })
    ),
    get: HttpApiEndpoint.get(nameOf("get"), `${path}/:task_id`, {
      params: { task_id: TaskParam },
      headers: {
        Prefer: requestHeaders.Prefer,
        "If-None-Match": requestHeaders["If-None-Match"]
      },
      success: [
        withHeaders(TaskResult, [...taskHeaders, "Retry-After", "Preference-Applied"]),
        Schema.String.annotate({
          description: "The same JSON as `data:` on each move"
        }).pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
        withHeaders(HttpApiSchema.Empty(304), taskHeaders)
      ],
      error: problems(401, 403, 404, 405, 429, 500, 503)
    }).annotateMerge(
      documented({
        summary: `Get a task of ${model}`,
        description: "Wait 2 to 3 seconds before the first poll and between polls",
        responses: {
          200: {
            description: `The task, and its \`${result}\` once it is completed`,
            example: {
              task_info: { ...exampleTask, status: "completed" },
              [result]: ["https://example.com/artifacts/art_0?expires=0&signature=0"]
            }
          },
          304: { description: "The client already has this response" }
        }
      })
    ),
    cancel: HttpApiEndpoint.delete(nameOf("cancel"), `${path}/:task_id`, {
      params: { task_id: TaskParam },
      success: withHeaders(TaskResult, taskHeaders),
      error: problems(401, 403, 404, 405, 409, 429, 500, 503)
    }).annotateMerge(
      documented({
        summary: `Cancel a task of ${model}`,
        description: "Fails the task with code 4004 and releases its hold",
        responses: { 200: { description: "The cancelled task" } }
      })
    )
  }
}

const anyBody = Schema.Record(Schema.String, Schema.Unknown)

const TaskParam = TaskId.annotate({ description: "The id that create returned" })

/** The same endpoints for any model that the catalog sells. The service serves these. */
const anyModel = <A extends Action>(action: A) =>
  endpointsOf({
    path: `/vendors/:vendor/v1/:model/${action}`,
    action,
    nameOf: (verb) => `${verb}_${action}`,
    model: "a model",
    body: anyBody,
    example: undefined,
    result: "images"
  })

export const generations = anyModel("generation")
export const edits = anyModel("edit")

/** `text-to-image-max` is `TextToImageMax`. */
const titleOf = (name: string): string =>
  name
    .split(/[^A-Za-z0-9]+/u)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")

const createBodyOf = (label: Label) =>
  Schema.Struct({
    ...bodies[label].fields,
    metadata: Schema.optionalKey(GivenMetadata),
    webhook: Schema.optionalKey(GivenWebhook)
  }).annotate({ identifier: titleOf(label), title: titleOf(label) })

const isLabel = Schema.is(Label)

/** The body schema of a model, with an example. */
const bodyOf = ({ described, label, model, vendor }: CatalogEntry) => {
  if (described !== undefined) {
    const title = titleOf(`${vendor}-${model}`)
    const body = requestSchemaOf(described.body).annotate({ identifier: title, title })
    return { body, example: undefined }
  }
  return isLabel(label)
    ? { body: createBodyOf(label), example: examples[label] }
    : { body: anyBody, example: undefined }
}

/** One group per vendor, with the endpoints of its models. */
export const generationGroups = (entries: ReadonlyArray<CatalogEntry>) =>
  Object.entries(Arr.groupBy(entries, ({ vendor }) => vendor)).map(([vendor, own]) =>
    HttpApiGroup.make(`Models of ${vendor}`, { topLevel: true })
      .add(...Arr.flatMap(own, endpointsOfModel))
      .middleware(InferenceKey)
      .annotateMerge(OpenApi.annotations({ description: "Create, get and cancel tasks" }))
  )

const endpointsOfModel = (entry: CatalogEntry) => {
  const { action, model, result, vendor } = entry
  const { cancel, create, get } = endpointsOf({
    path: modelPath(entry),
    action,
    nameOf: (verb) => [verb, vendor, model, action].join("_").replaceAll(/[^A-Za-z0-9]+/gu, "_"),
    model,
    ...bodyOf(entry),
    result
  })
  return Arr.make(create, get, cancel)
}
