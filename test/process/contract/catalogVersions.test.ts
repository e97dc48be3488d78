import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { createHash } from "node:crypto"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import { hashed } from "../../../src/catalog/CatalogContent.ts"
import { builtIn } from "../../../src/catalog/CatalogSource.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { DatabaseClock } from "../../../src/db/DatabaseClock.ts"
import { CatalogStore } from "../../../src/process/catalogs/CatalogStore.ts"
import { CatalogVersions } from "../../../src/process/catalogs/CatalogVersions.ts"
import { Process } from "../../../src/process/heartbeat/Process.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import { Accounts } from "../../../src/vendors/accounts/Accounts.ts"
import { describeStores } from "../../support/stores.ts"

/** docs/catalog.md#after-a-restart, ADR 0156, ADR 0176 */

const other = hashed({ ...builtIn.content, models: builtIn.content.models.slice(0, 1) })

describeStores("a start with a catalog that was replaced", (database) => {
  const Stores = Layer.mergeAll(CatalogStore.layer, ProcessStore.layer).pipe(
    Layer.provideMerge(database)
  )
  const startAt = (noon: DateTime.Utc) =>
    CatalogVersions.layer.pipe(
      Layer.provide(
        Layer.succeed(Process, {
          id: "proc_new",
          aliveSince: Effect.succeed(noon),
          callsAliveSince: Effect.succeed(noon),
          duty: () => Effect.succeed(Effect.never),
          deaths: Effect.succeed(Effect.never),
          changed: () => Effect.succeed(Effect.never),
          publishChange: () => {},
          onWaiting: () => {},
          silences: () => 0,
          confirm: Effect.void,
          databaseMillis: () => 0,
          isAlive: () => true,
          ownedTasks: () => false,
          ready: Effect.void
        })
      ),
      Layer.provide(Accounts.layer([])),
      Layer.provideMerge(Catalog.layer),
      Layer.provide(
        Layer.succeed(DatabaseClock, {
          now: Effect.succeed(noon),
          asParameter: Effect.succeedSome(noon)
        })
      ),
      Layer.provide(AppConfig.layerOf({})),
      Layer.provide(NodeServices.layer)
    )

  for (const [name, hours] of [
    ["ahead", -1],
    ["behind", 1]
  ] as const) {
    it.effect(`finds the others alive although its own clock is an hour ${name}`, () =>
      Effect.gen(function* () {
        // The process's own clock stands at the epoch
        const noon = DateTime.makeUnsafe(hours * 3_600_000)
        const store = yield* CatalogStore
        const processes = yield* ProcessStore
        const past = DateTime.subtract(noon, { minutes: 5 })
        const adopt = (catalog: typeof builtIn) => ({
          catalog,
          processId: "proc_old",
          isStart: false,
          aliveSince: past,
          now: past
        })
        yield* store.adopt(adopt(builtIn))
        yield* store.adopt(adopt(other))
        yield* processes.heartbeat("proc_old", DateTime.subtract(noon, { seconds: 2 }))
        yield* Effect.gen(function* () {
          const { adoptedAt, version } = (yield* CatalogVersions).current()
          assert.strictEqual(version.hash, other.hash)
          assert.deepStrictEqual(adoptedAt, past)
        }).pipe(Effect.provide(startAt(noon), { local: true }))
        yield* processes.leave("proc_old", noon)
        yield* Effect.gen(function* () {
          const { adoptedAt, version } = (yield* CatalogVersions).current()
          assert.strictEqual(version.hash, builtIn.hash, "it is alone")
          assert.deepStrictEqual(adoptedAt, noon, "adoptions are dated by the database")
        }).pipe(Effect.provide(startAt(noon), { local: true }))
      }).pipe(Effect.provide(Stores))
    )
  }

  it.effect("keeps its own catalog if its release cannot read the adopted one", () =>
    Effect.gen(function* () {
      const noon = DateTime.makeUnsafe(3_600_000)
      const store = yield* CatalogStore
      yield* (yield* ProcessStore).heartbeat("proc_newer", noon)
      const text = '{"pricesOfALaterRelease":true}'
      const hash = createHash("sha256").update(text).digest("hex")
      for (const catalog of [builtIn, { ...builtIn, hash, text }]) {
        const adoption = { processId: "proc_newer", isStart: false, aliveSince: noon, now: noon }
        yield* store.adopt({ catalog, ...adoption })
      }
      yield* Effect.gen(function* () {
        const { version } = (yield* CatalogVersions).current()
        assert.strictEqual(version.hash, builtIn.hash)
        const named = yield* store.byHash(builtIn.hash)
        assert.strictEqual(version.id, Option.getOrThrow(named).id, "what is sold names it")
      }).pipe(Effect.provide(startAt(noon), { local: true }))
    }).pipe(Effect.provide(Stores))
  )
})
