import { DateTime, Effect, Option } from "effect"
import { countOf, requestedOf } from "../../catalog/Price.ts"
import type { PriceRule } from "../../catalog/Price.ts"
import { priceAt } from "../../catalog/PriceRow.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { modelAt } from "../../domain/task/Candidate.ts"
import type { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"

/** What determines a task's charge, apart from its results. */
export interface Pricing {
  /** The number of results requested. Absent: the vendor decides. */
  readonly requested: number | undefined
  /** The price at which the task was accepted. */
  readonly price: PriceRule | undefined
}

/** Reads the pricing from the catalog with which the task was accepted. */
export const pricingWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* (task: TaskRow): Effect.fn.Return<Pricing> {
    const { action, body, catalogId, createdAt } = task
    const { model, vendor } = modelAt(task)
    if (action === "responses") return { requested: requestedOf(body), price: undefined }
    const catalog = yield* retryStore(versions.withId(catalogId))
    const entry = Option.flatMap(catalog, ({ find }) => find(vendor, model, action))
    if (Option.isNone(entry)) return { requested: requestedOf(body), price: undefined }
    const { described } = entry.value
    return {
      requested: described === undefined ? requestedOf(body) : countOf(described.count, body),
      price: priceAt(entry.value, DateTime.toEpochMillis(createdAt))
    }
  })
