import { Array as Arr, Clock, Context, Effect, Layer, Option } from "effect"
import type { TaskAlias } from "../../catalog/AliasTargets.ts"
import { Catalog } from "../../catalog/Catalog.ts"
import { modelPath } from "../../catalog/CatalogContent.ts"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import { truncate } from "../../catalog/FieldFaults.ts"
import { priceAt } from "../../catalog/PriceRow.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { LeftOut, Offer, OfferedModel } from "./Offer.ts"
import type { ModelPath } from "./TaskAcceptance.ts"

/** The offers at the paths of the catalog. */
export class Offers extends Context.Service<
  Offers,
  {
    /** Fails with 2006 if nothing at this path has a current price. */
    readonly at: (path: ModelPath) => Effect.Effect<Offer, Problem>
  }
>()("gateway/tasks/Offers") {
  static readonly layer = Layer.effect(
    Offers,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const vendors = yield* VendorClient

      const ofAlias = (
        path: ModelPath,
        version: CatalogVersion,
        { targets }: TaskAlias,
        now: number
      ): Effect.Effect<Offer, Problem> => {
        const leftOut: Array<LeftOut> = []
        const sold = targets.flatMap(({ model: entry, weight }): ReadonlyArray<OfferedModel> => {
          const price = priceAt(entry, now)
          if (price !== undefined) return [{ entry, price, weight }]
          leftOut.push({ entry, reason: "not_sold" })
          return []
        })
        const isSandbox = ({ entry }: OfferedModel) => vendors.isSandbox(entry.adapter)
        const sandbox = sold.every(isSandbox)
        // An alias never mixes simulated models with a vendor's
        const models = sandbox ? sold : sold.filter((it) => !isSandbox(it))
        for (const it of sold) {
          if (!models.includes(it)) leftOut.push({ entry: it.entry, reason: "sandbox" })
        }
        if (!Arr.isReadonlyArrayNonEmpty(models)) return Effect.fail(noPrice(path))
        const allowedBy = targets.map(({ model }) => model.model)
        return Effect.succeed({
          models,
          alias: { leftOut, allowedBy },
          catalogId: version.id,
          sandbox
        })
      }

      return Offers.of({
        at: Effect.fnUntraced(function* (path) {
          const version = catalog.current()
          const now = yield* Clock.currentTimeMillis
          const entry = version.find(path.vendor, path.model, path.action)
          if (Option.isNone(entry)) {
            const alias = version.findAlias(path.vendor, path.model, path.action)
            if (Option.isNone(alias)) return yield* noModel(path)
            return yield* ofAlias(path, version, alias.value, now)
          }
          const price = priceAt(entry.value, now)
          if (price === undefined) return yield* noPrice(path)
          return {
            models: [{ entry: entry.value, price }],
            catalogId: version.id,
            sandbox: vendors.isSandbox(entry.value.adapter)
          }
        })
      })
    })
  )
}

export const noModel = ({ action, model, vendor }: ModelPath): Problem =>
  problem(
    2006,
    `There is no model at ${modelPath({ vendor: truncate(vendor), model: truncate(model), action })}`
  )

const noPrice = (path: ModelPath): Problem =>
  problem(2006, `The model at ${modelPath(path)} has no price on this day`)
