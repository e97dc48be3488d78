import { Effect, Option } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import type { CatalogVersions } from "../../process/CatalogVersions.ts"
import { VendorError } from "../../vendors/VendorError.ts"

/** The catalog entry of a task, as it was when the task was accepted, whatever was reloaded since. */
export const entryWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* ({ action, catalogId, model, vendor }: TaskRow) {
    const catalog = yield* retryStore(versions.withId(catalogId))
    const entry = Option.flatMap(catalog, ({ find }) => find(vendor, model, action))
    return yield* Effect.mapError(
      Effect.fromOption(entry),
      () => new VendorError({ class: "OPERATOR", message: "the model left the catalog" })
    )
  })
