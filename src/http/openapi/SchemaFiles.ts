import { Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Catalog } from "../../catalog/Catalog.ts"
import {
  BalanceLow,
  KeyExpiring,
  TaskBatchCompleted,
  TaskCreated,
  TaskFailed,
  TaskSucceeded,
  WebhookFailing
} from "../../domain/Event.ts"
import { documentedApi } from "./OpenApiDocument.ts"

const events = {
  "task.created": TaskCreated,
  "task.succeeded": TaskSucceeded,
  "task.failed": TaskFailed,
  "task_batch.completed": TaskBatchCompleted,
  "balance.low": BalanceLow,
  "webhook.failing": WebhookFailing,
  "key.expiring": KeyExpiring
}

const eventSchema = (type: string, event: Schema.Top): unknown => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(event, {
    onExcessProperty: "ignore",
    generateDescriptions: false
  })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: type,
    ...schema,
    $defs: definitions
  }
}

/** One value per line, so that diffs show what changed. */
const textOf = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The generated files under `schema/`, by path. `npm run schema` writes them, and a test compares them. */
export const schemaFiles: Effect.Effect<ReadonlyMap<string, string>> = Effect.map(
  Catalog,
  (catalog) =>
    new Map([
      ["openapi.json", textOf(OpenApi.fromApi(documentedApi(catalog.current())))],
      ...Object.entries(events).map(
        ([type, event]) => [`events/${type}.json`, textOf(eventSchema(type, event))] as const
      )
    ])
).pipe(Effect.provide(Catalog.layer))
