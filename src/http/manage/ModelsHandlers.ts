import { Effect, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Catalog } from "../../catalog/Catalog.ts"
import { pricePeriods } from "../../catalog/OpenRoutes.ts"
import type { TokenModel } from "../../catalog/OpenRoutes.ts"
import type { TokenPrice } from "../../catalog/Price.ts"
import { UpstreamCalls } from "../../passthrough/UpstreamCalls.ts"
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
    const { upstream } = yield* Catalog
    const calls = yield* UpstreamCalls
    const models = yield* Effect.orDie(Effect.forEach(router.models, show))
    const tokenModels = upstream.tokenModels.flatMap((model) => {
      const route = upstream.routes.find(({ vendor }) => vendor === model.vendor)
      return route === undefined ? [] : showTokenModel(model, calls.isSandbox(route.provider))
    })
    return handlers.handleAll({
      listModels: pages(models),
      listTokenModels: pages(tokenModels)
    })
  })
)

interface PageRequest {
  readonly query: { readonly cursor?: string; readonly limit?: number }
}

/** Pages of a list that never changes. */
const pages = <View>(views: ReadonlyArray<View>) => {
  const rows = views.map((view, index) => ({ view, index }))
  return ({ query }: PageRequest) => {
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
}

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

const showTokenModel = (model: TokenModel, sandbox: boolean) =>
  pricePeriods(model).map(({ from, price, until }) => ({
    vendor: model.vendor,
    model: model.model,
    sandbox,
    price: {
      per: price.per,
      ...showRates(price),
      long: price.long === undefined ? null : { above: price.long.above, ...showRates(price.long) }
    },
    valid_from: from,
    valid_until: until,
    input_tokens_max: model.inputTokensMax,
    output_tokens_max: model.outputTokensMax,
    sunset: model.sunset ?? null,
    replacement: model.replacement ?? null
  }))

/** With the rates that others stand for. */
const showRates = (rates: Omit<TokenPrice, "per" | "long">) => {
  const write = rates.cacheWrite ?? rates.input
  return {
    input: rates.input,
    output: rates.output,
    cached_input: rates.cachedInput ?? rates.input,
    cache_write: write,
    cache_write_long: rates.cacheWriteLong ?? write,
    reasoning: rates.reasoning ?? rates.output,
    audio_input: rates.audioInput ?? rates.input,
    image_output: rates.imageOutput ?? rates.output
  }
}
