import { Effect, Option } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { modelAt } from "../../domain/Candidate.ts"
import type { CatalogVersions } from "../../process/CatalogVersions.ts"
import { VendorError } from "../../vendors/VendorError.ts"

/**
 * The catalog entry of the model that a task is at, as it was when the task was accepted, whatever was reloaded
 * since.
 */
export const entryWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* (task: TaskRow) {
    const { action, catalogId } = task
    const { model, vendor } = modelAt(task)
    const catalog = yield* retryStore(versions.withId(catalogId))
    const entry = Option.flatMap(catalog, ({ find }) => find(vendor, model, action))
    return yield* Effect.mapError(
      Effect.fromOption(entry),
      () => new VendorError({ class: "OPERATOR", message: "the model left the catalog" })
    )
  })
