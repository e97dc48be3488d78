import { Effect, Layer, Queue } from "effect"
import { CatalogVersions } from "../process/catalogs/CatalogVersions.ts"
import { ProcessGroup } from "../process/ProcessGroup.ts"

/**
 * SIGHUP reloads `CATALOG_FILE` for all processes. A faulty file is logged, and the adopted catalog stays. docs/catalog.md#reload
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const versions = yield* CatalogVersions
    // Signals during a reload cause one more reload
    const signals = yield* Queue.sliding<void>(1)
    yield* (yield* ProcessGroup).onReload(() => Queue.offerUnsafe(signals, undefined))
    const reload = Effect.gen(function* () {
      const { adopted, difference, hash } = yield* versions.reload(false)
      const { added, changed, removed } = difference
      yield* Effect.logInfo(
        adopted
          ? `SIGHUP: the catalog ${hash} adds ${added.length} rows, removes ${removed.length} and changes ${changed.length}`
          : `SIGHUP: the catalog ${hash} is already adopted`
      )
    }).pipe(
      Effect.catchCause((cause) =>
        Effect.logError("SIGHUP: the catalog was not reloaded; the adopted one stays", cause)
      )
    )
    yield* Queue.take(signals).pipe(Effect.andThen(reload), Effect.forever, Effect.forkScoped)
  })
)
