import { Clock, Effect, Option, Schema } from "effect"
import * as Tool from "effect/ai/Tool"
import { Action } from "../../catalog/CatalogEntry.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { PriceRule } from "../../catalog/Price.ts"
import { priceAt } from "../../catalog/PriceRow.ts"
import { MediaModelView } from "../../contract/ModelsApi.ts"
import { mcpModelsDefault, mcpModelsMax } from "../../domain/ShapeLimits.ts"
import { ResultKind } from "../../domain/Task.ts"
import { Router } from "../../tasks/Router.ts"
import type { RoutedModel } from "../../tasks/Router.ts"
import { allowsModel, ApiKeys } from "../../users/ApiKeys.ts"
import { showMediaFields } from "../manage/catalog/ModelsHandlers.ts"
import { findModel } from "../openai/ShapedModel.ts"
import type { ShapedModel } from "../openai/ShapedModel.ts"
import { bind, readsOnly } from "./Tools.ts"

/** How the tools name a model. */
export const modelArguments = {
  model: Schema.String.annotate({
    description: "A model of list_models, such as alibaba/text-to-image-max"
  }),
  action: Schema.optionalKey(
    Action.annotate({ description: "Only where a model has both: generation or edit" })
  )
}

/** The model or alias that a call names. Fails with 2001 or 2006. */
export const modelOf = (
  models: ReadonlyArray<ShapedModel>,
  { action, model }: { readonly model: string; readonly action?: Action }
) =>
  findModel(
    models.filter(({ entry }) => action === undefined || entry.action === action),
    model
  )

const ModelView = Schema.Struct({
  /** As the other tools take it. */
  model: Schema.String,
  action: Action,
  result: ResultKind,
  sandbox: Schema.Boolean,
  /** In credits, by image, second or call; 100 credits are 1 US dollar. */
  price: PriceRule,
  deprecation: Schema.NullOr(Schema.String),
  sunset: Schema.NullOr(Schema.String),
  replacement: Schema.NullOr(Schema.String),
  /** JSON Schema of `input`. */
  input_schema: Schema.Record(Schema.String, Schema.Json),
  media: MediaModelView.fields.media
})

const definition = Tool.make("list_models", {
  description:
    "Lists the image and video models that this key may use, each with the JSON Schema of its input, the rules of its media, and its price in credits (100 credits are 1 US dollar). Ask for one model by name, or page with next_cursor.",
  parameters: Schema.Struct({
    model: Schema.optionalKey(
      Schema.String.annotate({ description: "Only models whose name contains this text" })
    ),
    result: Schema.optionalKey(ResultKind.annotate({ description: "Only models that make these" })),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: mcpModelsMax })).annotate({
        description: `Models of a page; ${mcpModelsDefault} without it`
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
    media: showMediaFields(entry.label, input_schema)
  }))

/** What is sold now, in the order of its names, so that a cursor holds when the catalog changes. */
export const makeModelTools = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const router = yield* Router
  return [
    bind(definition, undefined, (args, caller) =>
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
