import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { CatalogVersion } from "../../../catalog/CatalogContent.ts"
import { pathKey } from "../../../catalog/CatalogContent.ts"
import type { ModelPrice } from "../../../catalog/ModelPrice.ts"
import type { OpenRoute } from "../../../catalog/OpenRoutes.ts"
import type { PriceRule } from "../../../catalog/Price.ts"
import { pricePeriods } from "../../../catalog/PriceRow.ts"
import type { PricePeriod, PriceRow } from "../../../catalog/PriceRow.ts"
import { routeKey, tokenModelKey } from "../../../catalog/UpstreamCatalog.ts"
import { Api } from "../../../contract/Api.ts"
import { invalid, problem } from "../../../domain/Problem.ts"
import { changesNothing } from "../../../process/audit/AuditLog.ts"
import { CatalogVersions } from "../../../process/catalogs/CatalogVersions.ts"
import { requireOperator } from "../../server/access/Authentication.ts"
import { showRow, showModelPrice } from "./PriceRows.ts"

/** What is for sale, what was for sale, and the reload of `CATALOG_FILE`. */
export const layer = HttpApiBuilder.group(
  Api,
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    const versions = yield* CatalogVersions

    const found = ({ at, hash }: { readonly at?: DateTime.Utc; readonly hash?: string }) => {
      if (hash !== undefined) return versions.withHash(hash)
      return at === undefined ? Effect.succeedSome(versions.current()) : versions.at(at)
    }

    return handlers.handleAll({
      getCatalog: Effect.fnUntraced(function* ({ query }) {
        yield* requireOperator
        const { at, hash } = query
        if (at !== undefined && hash !== undefined) {
          return yield* invalid([
            { pointer: "#/query/at", detail: "Expected only one of at and hash" }
          ])
        }
        const catalog = yield* found(query)
        if (Option.isNone(catalog)) {
          return yield* problem(2005, "There is no such catalog, or this release cannot read it")
        }
        const { adoptedAt, version } = catalog.value
        return {
          hash: version.hash,
          adopted_at: adoptedAt,
          data: rowsOf(version).filter(
            ({ valid_from, valid_until }) =>
              at === undefined || isWithin(DateTime.formatIsoDateUtc(at), valid_from, valid_until)
          )
        }
      }),
      reloadCatalog: Effect.fnUntraced(function* ({ query }) {
        yield* requireOperator
        if (query.dry_run === "true") yield* changesNothing
        const { adopted, difference, hash, previousHash } = yield* Effect.catchTag(
          versions.reload(query.dry_run === "true"),
          "CatalogError",
          ({ errors }) => Effect.fail(invalid(errors))
        )
        return { hash, previous_hash: previousHash, adopted, difference }
      })
    })
  })
)

const isWithin = (day: string, from: string | null, until: string | null): boolean =>
  (from === null || from <= day) && (until === null || day < until)

const rowsOf = ({ all, upstream }: CatalogVersion) => [
  ...all.flatMap((row) => {
    const id = pathKey(row)
    return pricePeriods(row).map((period) => mediaRow(id, row, period))
  }),
  ...upstream.tokenModels.flatMap((row) => {
    const id = tokenModelKey(row)
    return pricePeriods(row).map((period) => tokenRow(id, row, period))
  }),
  ...upstream.routes.flatMap(routeRow)
]

type Days = Omit<PriceRow<unknown>, "price">

const mediaRow = (id: string, row: Days, period: PricePeriod<PriceRule>) => ({
  type: "media" as const,
  id,
  price: period.price,
  ...showRow(row, period)
})

const tokenRow = (id: string, row: Days, period: PricePeriod<ModelPrice>) => ({
  type: "token" as const,
  id,
  price: showModelPrice(period.price),
  ...showRow(row, period)
})

const always = { from: null, until: null, price: null, source: null }

/** The price row of a route that is charged per call. Other routes have the model's price or none. */
const routeRow = (route: OpenRoute) =>
  route.meter.per === "call"
    ? [
        {
          type: "route" as const,
          id: routeKey(route),
          price: route.meter,
          ...showRow({}, always)
        }
      ]
    : []
