import { Clock, Effect, Option, Schema } from "effect"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import type { Action } from "../../catalog/PathSegment.ts"
import type { PriceRule } from "../../catalog/Price.ts"
import { priceAt } from "../../catalog/PriceRow.ts"
import { listModels } from "../../contract/McpTools.ts"
import { mcpModelsDefault } from "../../domain/limits/ShapeLimits.ts"
import { Router } from "../../tasks/creation/Router.ts"
import type { RoutedModel } from "../../tasks/creation/Router.ts"
import { allowsModel, ApiKeys } from "../../users/ApiKeys.ts"
import { showMediaFields } from "../manage/catalog/ModelsHandlers.ts"
import { findModel } from "../openai/ShapedModel.ts"
import type { ShapedModel } from "../openai/ShapedModel.ts"
import { bind } from "./Tools.ts"

/** The model or alias that a call names. Fails with 2001 or 2006. */
export const modelOf = (
  models: ReadonlyArray<ShapedModel>,
  { action, model }: { readonly model: string; readonly action?: Action }
) =>
  findModel(
    models.filter(({ entry }) => action === undefined || entry.action === action),
    model
  )

const keyOf = ({ action, model, vendor }: CatalogEntry): string => `${vendor}/${model}/${action}`

const decodeSchema = Schema.decodeUnknownEffect(Schema.Record(Schema.String, Schema.Json))

const show = ({ bodySchema, entry, sandbox }: RoutedModel, price: PriceRule) =>
  Effect.map(Effect.orDie(decodeSchema(bodySchema)), (input_schema) => ({
    model: `${entry.vendor}/${entry.model}`,
    action: entry.action,
    result: entry.result,
    sandbox,
    price,
    deprecation: entry.deprecation ?? entry.sunset ?? null,
    sunset: entry.sunset ?? null,
    replacement: entry.replacement ?? null,
    input_schema,
    media: showMediaFields(entry, input_schema)
  }))

/** Lists the current offers, sorted by name so that a cursor stays valid when the catalog changes. */
export const makeModelTools = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const router = yield* Router
  return [
    bind(listModels, undefined, (args, caller) =>
      Effect.gen(function* () {
        const { cursor = "", limit = mcpModelsDefault, model = "", result } = args
        const now = yield* Clock.currentTimeMillis
        const { allowedModels } = yield* keys.find(Option.some(caller.userId), caller.apiKeyId)
        const owner = { ...caller, limits: { models: allowedModels } }
        const found = router
          .models()
          .flatMap((it) => {
            const price = priceAt(it.entry, now)
            const key = keyOf(it.entry)
            const isAsked =
              key.includes(model) && (result === undefined || it.entry.result === result)
            const isAllowed = (it.candidates ?? [it.entry]).every((one) =>
              allowsModel(owner, [one.model])
            )
            return price !== undefined && isAsked && isAllowed ? [{ it, key, price }] : []
          })
          .toSorted((a, b) => (a.key < b.key ? -1 : 1))
          .filter(({ key }) => key > cursor)
        const page = found.slice(0, limit)
        return {
          value: {
            models: yield* Effect.forEach(page, ({ it, price }) => show(it, price)),
            next_cursor: found.length > limit ? (page.at(-1)?.key ?? null) : null
          }
        }
      })
    )
  ]
})
