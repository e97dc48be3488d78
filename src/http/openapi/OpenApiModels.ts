import { examples } from "../../catalog/bodies/Examples.ts"
import { modelPath } from "../../catalog/CatalogContent.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { SkipReason } from "../../domain/Candidate.ts"
import {
  componentOf,
  endingHeaders,
  jsonContent,
  modelHeaders,
  problems,
  refTo,
  everyResponse
} from "./OpenApiParts.ts"
import type { Json } from "./OpenApiParts.ts"

/** The paths of the models, each with the body of its own model. docs/reference/tasks.md#paths */

const security = [{ bearer: [] }]

const exampleId = "01a1fde8-21f4-7d82-8c09-ff1738b15d2e"
const exampleTime = "2026-01-01T00:00:00.000Z"
const times = { created_at: exampleTime, updated_at: exampleTime }

/** Components of the responses of model paths. */
export const taskComponents: Json = {
  CreatedTask: {
    type: "object",
    required: ["task_info"],
    properties: {
      task_info: {
        type: "object",
        required: ["id", "created_at", "updated_at"],
        properties: {
          id: { type: "string", format: "uuid" },
          created_at: { type: "string", format: "date-time" },
          updated_at: { type: "string", format: "date-time" }
        }
      }
    }
  },
  CreatedEdit: {
    type: "object",
    required: ["task_info"],
    properties: {
      task_info: {
        type: "object",
        required: ["id", "status", "created_at", "updated_at"],
        properties: {
          id: { type: "string", format: "uuid" },
          status: { type: "string", enum: ["pending"] },
          created_at: { type: "string", format: "date-time" },
          updated_at: { type: "string", format: "date-time" }
        }
      }
    }
  },
  Quote: {
    type: "object",
    required: ["quote"],
    properties: {
      quote: {
        type: "object",
        required: ["amount", "currency"],
        properties: {
          amount: { type: "string", pattern: String.raw`^\d+\.\d\d$` },
          currency: { type: "string", enum: ["credits"] },
          candidates: {
            type: "array",
            description: "Of an alias only: its models; the amount is that of the dearest",
            items: {
              type: "object",
              required: ["vendor", "model", "amount", "skipped"],
              properties: {
                vendor: { type: "string" },
                model: { type: "string" },
                amount: { type: ["string", "null"], pattern: String.raw`^\d+\.\d\d$` },
                skipped: { enum: [...SkipReason.literals, null] }
              }
            }
          }
        }
      }
    }
  }
}

const parameter = (name: string, where: "header" | "query", description: string, schema: Json) => ({
  name,
  in: where,
  required: false,
  description,
  schema
})

/** Components of the parameters of model paths. */
export const taskParameters: Json = {
  TaskId: {
    name: "task_id",
    in: "path",
    required: true,
    description: "The id that create returned",
    schema: { type: "string", format: "uuid" }
  },
  DryRun: parameter("dry_run", "query", "Only checks and prices: no task, no hold, no event", {
    type: "boolean",
    default: false
  }),
  IdempotencyKey: parameter(
    "Idempotency-Key",
    "header",
    "Same key and same body within 24 hours: the first response again, one task, one hold",
    { type: "string", minLength: 1, maxLength: 255, examples: ["order-1"] }
  ),
  Prefer: parameter("Prefer", "header", "Waits this many seconds at most for the end of the task", {
    type: "string",
    pattern: String.raw`^wait=\d{1,2}$`
  }),
  ContentType: parameter("Content-Type", "header", "The type of the body", {
    type: "string",
    enum: ["application/json"]
  }),
  MaxCost: parameter(
    "X-Service-Max-Cost",
    "header",
    "Credits that the request may cost at most; above that it is refused with code 1103, before a hold",
    { type: "string", examples: ["7.50"] }
  ),
  Metadata: {
    ...parameter("metadata", "query", "`metadata[key]=value`, of several all", {
      type: "object",
      additionalProperties: { type: "string" }
    }),
    style: "deepObject",
    explode: true
  },
  IfNoneMatch: parameter("If-None-Match", "header", "The `ETag` of an earlier response", {
    type: "string"
  })
}

const ofTheTask = {
  ETag: refTo("headers", "ETag"),
  "X-Service-Cost": refTo("headers", "Cost"),
  ...modelHeaders,
  ...endingHeaders
}

const ofTheCreate = {
  ...everyResponse,
  "X-Service-Cost": refTo("headers", "Cost"),
  "X-Service-Balance": refTo("headers", "Balance"),
  "X-Service-Budget-Remaining": refTo("headers", "BudgetRemaining"),
  "Idempotency-Replayed": refTo("headers", "IdempotencyReplayed"),
  "Preference-Applied": refTo("headers", "PreferenceApplied"),
  ...endingHeaders
}

const operationName = (verb: string, { action, model, vendor }: CatalogEntry): string =>
  [verb, vendor, model, action].join("_").replaceAll(/[^A-Za-z0-9]+/gu, "_")

const createOf = (entry: CatalogEntry): Json => {
  const { action, label, model } = entry
  const isEdit = action === "edit"
  const createdComponent = isEdit ? "CreatedEdit" : "CreatedTask"
  const created = {
    task_info: { id: exampleId, ...(isEdit ? { status: "pending" } : {}), ...times }
  }
  return {
    tags: [`Models of ${entry.vendor}`],
    security,
    operationId: operationName("create", entry),
    summary: `Create a task of ${model}`,
    description:
      "Returns at once, or waits with `Prefer: wait=N`; poll the task's own path, or wait for the webhook",
    parameters: ["DryRun", "IdempotencyKey", "Prefer", "MaxCost", "ContentType"].map((name) =>
      refTo("parameters", name)
    ),
    requestBody: {
      required: true,
      ...jsonContent(refTo("schemas", componentOf(label)), examples[label])
    },
    responses: {
      200: {
        description:
          "With `dry_run=true` the price; with `Prefer: wait=N` the task, if it has ended",
        headers: { ...ofTheCreate, ...ofTheTask },
        // The last one is of the 202: some generators take the first success for all of them
        ...jsonContent(
          {
            anyOf: ["Quote", "TaskResult", createdComponent].map((name) => refTo("schemas", name))
          },
          { quote: { amount: "7.50", currency: "credits" } }
        )
      },
      202: {
        description: "The task was accepted",
        headers: ofTheCreate,
        ...jsonContent(refTo("schemas", createdComponent), created)
      },
      ...problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429, 431, 500, 503)
    }
  }
}

const shown = (entry: CatalogEntry, description: string): Json => ({
  description,
  headers: {
    ...everyResponse,
    ...ofTheTask,
    "Retry-After": refTo("headers", "RetryAfter"),
    "Preference-Applied": refTo("headers", "PreferenceApplied")
  },
  content: {
    "application/json": {
      schema: refTo("schemas", "TaskResult"),
      example: {
        task_info: { id: exampleId, status: "completed", ...times },
        [entry.result]: ["https://example.com/artifacts/art_0?expires=0&signature=0"]
      }
    },
    "text/event-stream": {
      schema: { type: "string", description: "The same JSON as `data:` on each move" }
    }
  }
})

const getOf = (entry: CatalogEntry): Json => ({
  tags: [`Models of ${entry.vendor}`],
  security,
  operationId: operationName("get", entry),
  summary: `Get a task of ${entry.model}`,
  description: "Wait 2 to 3 seconds before the first poll and between polls",
  parameters: [refTo("parameters", "Prefer"), refTo("parameters", "IfNoneMatch")],
  responses: {
    200: shown(entry, `The task, and its \`${entry.result}\` once it is completed`),
    304: {
      description: "The client already has this response",
      headers: { ...everyResponse, ...ofTheTask }
    },
    ...problems(401, 403, 404, 405, 429, 500, 503)
  }
})

const cancelOf = (entry: CatalogEntry): Json => ({
  tags: [`Models of ${entry.vendor}`],
  security,
  operationId: operationName("cancel", entry),
  summary: `Cancel a task of ${entry.model}`,
  description: "Fails the task with code 4004 and releases its hold",
  responses: {
    200: {
      description: "The cancelled task",
      headers: { ...everyResponse, ...ofTheTask },
      ...jsonContent(refTo("schemas", "TaskResult"))
    },
    ...problems(401, 403, 404, 405, 409, 429, 500, 503)
  }
})

export const pathsOf = (entry: CatalogEntry): Json => {
  const path = modelPath(entry)
  return {
    [path]: { post: createOf(entry) },
    [`${path}/{task_id}`]: {
      parameters: [refTo("parameters", "TaskId")],
      get: getOf(entry),
      delete: cancelOf(entry)
    }
  }
}
