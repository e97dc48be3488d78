import { Effect, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Router } from "../../tasks/Router.ts"
import type { RoutedModel } from "../../tasks/Router.ts"
import { Api } from "./Api.ts"
import { ModelKey } from "./ModelsApi.ts"
import { readPage, toPage } from "./Paging.ts"

/** The catalog, the same for every caller. */
export const layer = HttpApiBuilder.group(
  Api,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const router = yield* Router
    const models = yield* Effect.orDie(Effect.forEach(router.models, show))
    const rows = models.map((view, index) => ({ view, index }))
    return handlers.handleAll({
      listModels: ({ query }) => {
        const { before, limit } = readPage(query, ModelKey)
        const from = Option.match(before, { onNone: () => 0, onSome: (index) => Number(index) + 1 })
        return Effect.succeed(
          toPage(
            rows.slice(from, from + limit + 1),
            limit,
            ({ index }) => String(index),
            ({ view }) => view
          )
        )
      }
    })
  })
)

const decodeSchema = Schema.decodeUnknownEffect(Schema.Record(Schema.String, Schema.Json))

const show = ({ bodySchema, entry, sandbox }: RoutedModel) =>
  Effect.map(decodeSchema(bodySchema), (body_schema) => ({
    vendor: entry.vendor,
    model: entry.model,
    path: `/vendors/${entry.vendor}/v1/${entry.model}/${entry.action}`,
    result: entry.result,
    sandbox,
    price: entry.price,
    body_schema
  }))
