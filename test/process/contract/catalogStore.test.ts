import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer, Option } from "effect"
import { hashed } from "../../../src/catalog/CatalogContent.ts"
import { builtIn } from "../../../src/catalog/CatalogSource.ts"
import { CatalogStore } from "../../../src/process/catalogs/CatalogStore.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import { describeStores } from "../../support/stores.ts"

/** docs/catalog.md#after-a-restart, ADR 0156 */

const noon = DateTime.makeUnsafe("2026-11-22T12:00:00Z")
const at = (seconds: number) => DateTime.add(noon, { seconds })
const catalogOf = (models: number) =>
  hashed({ ...builtIn.content, models: builtIn.content.models.slice(0, models) })
const [first, second, third] = [catalogOf(1), catalogOf(2), catalogOf(3)]

const adopt = (
  catalog: typeof builtIn,
  seconds: number,
  options: { readonly isStart?: boolean; readonly processId?: string } = {}
) =>
  Effect.flatMap(CatalogStore, (store) =>
    store.adopt({
      catalog,
      processId: "proc_a",
      isStart: false,
      aliveSince: at(seconds - 10),
      now: at(seconds),
      ...options
    })
  )

describeStores("the store of catalogs", (database) => {
  const Live = Layer.mergeAll(CatalogStore.layer, ProcessStore.layer).pipe(
    Layer.provideMerge(database)
  )

  it.effect(
    "adopts a catalog once, numbers each text once, and records what was adopted when",
    () =>
      Effect.gen(function* () {
        const store = yield* CatalogStore
        assert.isTrue(Option.isNone(yield* store.latest(0)))
        const one = yield* adopt(first, 0)
        assert.deepInclude(one, { hash: first.hash, text: first.text, adoptedAt: noon })
        assert.deepStrictEqual(yield* adopt(first, 1), one, "the same again")
        const two = yield* adopt(second, 10)
        assert.isAbove(two.adoption, one.adoption)
        const again = yield* adopt(first, 20)
        assert.strictEqual(again.catalog, one.catalog)
        assert.isAbove(again.adoption, two.adoption)
        assert.isNull(Option.getOrThrow(yield* store.latest(again.adoption)).text)
        assert.strictEqual(Option.getOrThrow(yield* store.latest(two.adoption)).text, first.text)
        const hashAt = (seconds: number) =>
          Effect.map(store.at(at(seconds)), (found) =>
            Option.getOrUndefined(Option.map(found, ({ hash }) => hash))
          )
        assert.deepStrictEqual(yield* Effect.forEach([-1, 0, 9, 10, 19, 20, 1000], hashAt), [
          undefined,
          first.hash,
          first.hash,
          second.hash,
          second.hash,
          first.hash,
          first.hash
        ])
        const found = Option.getOrThrow(yield* store.byHash(first.hash))
        assert.deepStrictEqual(Option.getOrThrow(yield* store.byId(one.catalog)), found)
        assert.deepStrictEqual(found.adoptedAt, at(20))
      }).pipe(Effect.provide(Live))
  )

  it.effect(
    "a process that starts alone adopts its file, even if the file was replaced before",
    () =>
      Effect.gen(function* () {
        const processes = yield* ProcessStore
        yield* processes.heartbeat("proc_b", at(0))
        yield* adopt(first, 0)
        yield* adopt(second, 10)
        const isStart = true
        assert.strictEqual((yield* adopt(first, 60, { isStart })).hash, first.hash)
      }).pipe(Effect.provide(Live))
  )

  it.effect("a process that joins others adopts their catalog, unless its file is new to all", () =>
    Effect.gen(function* () {
      const processes = yield* ProcessStore
      yield* adopt(first, 0)
      yield* adopt(second, 10)
      yield* processes.heartbeat("proc_b", at(58))
      yield* processes.heartbeat("proc_c", at(58))
      const joins = { isStart: true, processId: "proc_c" }
      assert.strictEqual((yield* adopt(first, 60, joins)).hash, second.hash, "an earlier file")
      assert.strictEqual((yield* adopt(third, 61, joins)).hash, third.hash, "a new one")
      yield* processes.leave("proc_b", at(62))
      assert.strictEqual((yield* adopt(first, 63, joins)).hash, first.hash, "it is alone")
    }).pipe(Effect.provide(Live))
  )

  it.effect("concurrent adoptions happen one after the other, and a text never changes", () =>
    Effect.gen(function* () {
      const store = yield* CatalogStore
      const many = yield* Effect.forEach(
        Array.from({ length: 12 }, (_, n) => [first, second, third][n % 3]!),
        (catalog) => adopt(catalog, 0),
        { concurrency: "unbounded" }
      )
      const latest = Option.getOrThrow(yield* store.latest(0))
      assert.strictEqual(Math.max(...many.map(({ adoption }) => adoption)), latest.adoption)
      assert.strictEqual(new Set(many.map(({ catalog }) => catalog)).size, 3)
      const sql = yield* PgClient.PgClient
      for (const change of [
        sql`UPDATE catalogs SET text = '{}'`,
        sql`DELETE FROM catalogs`,
        sql`TRUNCATE catalogs CASCADE`
      ]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(change)))
      }
    }).pipe(Effect.provide(Live))
  )
})
