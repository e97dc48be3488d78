import { Effect, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { namesIn, shownTokenModel } from "../../../catalog/AliasTargets.ts"
import { Catalog } from "../../../catalog/Catalog.ts"
import { modelPath, pathKey } from "../../../catalog/CatalogContent.ts"
import type { CatalogEntry } from "../../../catalog/CatalogEntry.ts"
import { mimesOf } from "../../../catalog/media/Formats.ts"
import { mediaFieldsOf } from "../../../catalog/media/MediaFields.ts"
import type { MediaRules } from "../../../catalog/media/MediaRules.ts"
import { serves } from "../../../catalog/OpenRoutes.ts"
import type { OpenRoute, TokenModel } from "../../../catalog/OpenRoutes.ts"
import { pricePeriods } from "../../../catalog/PriceRow.ts"
import { tokenModelKey } from "../../../catalog/UpstreamCatalog.ts"
import { Api } from "../../../contract/Api.ts"
import { ModelKey } from "../../../contract/ModelsApi.ts"
import type { MediaModelView, TokenModelView } from "../../../contract/ModelsApi.ts"
import { vendorBodyOf } from "../../../contract/VendorApi.ts"
import { UpstreamCalls } from "../../../passthrough/UpstreamCalls.ts"
import { Router } from "../../../tasks/creation/Router.ts"
import type { RoutedModel } from "../../../tasks/creation/Router.ts"
import { readPage, toPage } from "../Paging.ts"
import { showRow, showModelPrice } from "./PriceRows.ts"

interface Row {
  readonly key: string
  readonly view: typeof MediaModelView.Type | typeof TokenModelView.Type
}

/** The models of the adopted catalog. They are the same for every caller. */
export const layer = HttpApiBuilder.group(
  Api,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const router = yield* Router
    const catalog = yield* Catalog
    const calls = yield* UpstreamCalls

    const makeRows = Effect.gen(function* () {
      const { aliases, routes, tokenModels } = catalog.current().upstream
      const media = yield* Effect.orDie(Effect.forEach(router.models(), showMedia))
      const tokens = tokenModels.flatMap((model) => {
        const route = routes.find((route) => serves(route, model))
        return route === undefined ? [] : showTokens(model, route, calls.isSandbox(route.provider))
      })
      const aliased = aliases.flatMap((alias) => {
        const shown = shownTokenModel(alias)
        const [first] = alias.targets
        const route = first && routes.find((route) => serves(route, first.model))
        if (shown === undefined || route === undefined) return []
        const sandbox = calls.isSandbox(route.provider)
        return showTokens(shown, route, sandbox, namesIn(alias.targets))
      })
      return [...media.flat(), ...tokens, ...aliased].toSorted((a, b) => (a.key < b.key ? -1 : 1))
    })
    // Building the schemas of all bodies takes time, so it is done once per catalog, at the first request
    let made: { readonly hash: string; readonly rows: ReadonlyArray<Row> } | undefined

    return handlers.handleAll({
      listModels: Effect.fnUntraced(function* ({ query }) {
        const { hash } = catalog.current()
        if (made?.hash !== hash) made = { hash, rows: yield* makeRows }
        const { rows } = made
        const { before, limit } = readPage(query, ModelKey)
        const rest = Option.match(before, {
          onNone: () => rows,
          onSome: (last) => rows.filter(({ key }) => key > last)
        })
        return yield* toPage(
          rest.slice(0, limit + 1),
          limit,
          ({ key }) => key,
          ({ view }) => view
        )
      })
    })
  })
)

/**
 * The media rules of those fields that the body actually has: an upstream model may not accept every field of its
 * label.
 */
export const showMediaFields = (
  entry: Pick<CatalogEntry, "label" | "described">,
  { properties }: { readonly properties?: unknown }
) =>
  Object.fromEntries(
    Object.entries(mediaFieldsOf(entry)).flatMap(([field, rules]) =>
      typeof properties === "object" && properties !== null && field in properties
        ? [[field, showMediaRules(rules)]]
        : []
    )
  )

const showMediaRules = (rules: MediaRules) => ({
  kind: rules.kind,
  media_types: rules.formats.map((format) => mimesOf[format][0]),
  max_bytes: rules.bytesMax,
  min_side: rules.kind === "image" ? rules.sideMin : null,
  max_side: rules.kind === "image" ? (rules.sideMax ?? null) : null,
  min_seconds: rules.kind === "audio" ? rules.secondsMin : null,
  max_seconds: rules.kind === "audio" ? rules.secondsMax : null,
  inline: rules.kind !== "video"
})

const decodeSchema = Schema.decodeUnknownEffect(Schema.Record(Schema.String, Schema.Json))

const showMedia = ({ bodySchema, candidates, entry, sandbox }: RoutedModel) =>
  Effect.map(decodeSchema(bodySchema), (body_schema) =>
    pricePeriods(entry).map((period): Row => ({
      key: `media ${pathKey(entry)} ${period.from ?? ""}`,
      view: {
        type: "media",
        vendor: entry.vendor,
        model: entry.model,
        path: modelPath(entry),
        sandbox,
        ...(candidates && { candidates }),
        result: entry.result,
        price: period.price,
        ...showRow(entry, period),
        body_schema,
        media: showMediaFields(entry, body_schema)
      }
    }))
  )

const decodeRecord = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Json))

const tokenBodySchema = (route: OpenRoute) =>
  decodeRecord(Schema.toJsonSchemaDocument(vendorBodyOf(route)).schema)

const showTokens = (
  model: TokenModel,
  route: OpenRoute,
  sandbox: boolean,
  candidates?: RoutedModel["candidates"]
): ReadonlyArray<Row> =>
  pricePeriods(model).map((period) => ({
    key: `token ${tokenModelKey(model)} ${period.from ?? ""}`,
    view: {
      type: "token",
      vendor: model.vendor,
      model: model.model,
      path: `/vendors/${model.vendor}${route.path.replace("{model}", model.model)}`,
      sandbox,
      ...(candidates && { candidates }),
      price: showModelPrice(period.price),
      ...showRow(model, period),
      input_tokens_max: model.inputTokensMax,
      output_tokens_max: model.outputTokensMax,
      body_schema: tokenBodySchema(route)
    }
  }))
