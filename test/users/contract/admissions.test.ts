import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import type { TaskId } from "../../../src/domain/Ids.ts"
import { AdmissionStore } from "../../../src/users/AdmissionStore.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores, stores } from "../../support/stores.ts"
import { accept, callKeyOf, newCaller, walletStores } from "../../support/wallets.ts"

/** The number of transactions that this connection has committed. */
const committed = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ count: number }>`
    SELECT xact_commit::int AS count FROM pg_stat_database WHERE datname = current_database()`
  return row!.count
})

for (const [name, database] of Object.entries(singleStores)) {
  describe(`admissions that arrive together (${name})`, () => {
    layer(Layer.mergeAll(AdmissionStore.layer, walletStores).pipe(Layer.provideMerge(database)), {
      timeout: "120 seconds"
    })((it) => {
      const admit = Effect.fnUntraced(function* (key: string, taskId?: TaskId) {
        const { admit } = yield* AdmissionStore
        const limits = { perMinute: 0, userPerMinute: 0 }
        const now = yield* DateTime.now
        const request = { ...limits, now, taskId: Option.fromUndefinedOr(taskId) }
        return yield* admit({ ...request, keyHash: Buffer.from(key) })
      })

      it.effect("share statements, and each gets its own key and only tasks of its user", () =>
        Effect.gen(function* () {
          const [one, other] = [yield* newCaller(100), yield* newCaller(100)]
          const { taskId: ofOne } = yield* accept(one, 1)
          const { taskId: ofOther } = yield* accept(other, 1)
          const asked = [
            { key: one, task: ofOne, found: ofOne },
            { key: other, task: ofOther, found: ofOther },
            { key: one, task: ofOther, found: undefined },
            { key: other, task: undefined, found: undefined }
          ]
          const before = yield* committed
          const all = Array.from({ length: 100 }, () => asked).flat()
          const admitted = yield* Effect.forEach(all, ({ key, task }) => admit(key, task), {
            concurrency: "unbounded"
          })
          // Two of them read the statistics
          const statements = (yield* committed) - before - 2
          assert.isAtMost(statements, 10)
          for (const [n, { found, key }] of all.entries()) {
            const { key: row, task } = Option.getOrThrow(admitted[n]!)
            assert.strictEqual(row.id, callKeyOf(key))
            const id = Option.getOrUndefined(Option.map(task, (it) => it.id))
            assert.strictEqual(id, found)
          }
        })
      )

      it.effect("are refused one by one: an unknown key does not affect the others", () =>
        Effect.gen(function* () {
          const one = yield* newCaller(100)
          const admitted = yield* Effect.forEach(
            [one, "unknown", one],
            (key) => Effect.map(admit(key), Option.isSome),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(admitted, [true, false, true])
        })
      )
    })
  })
}

layer(AdmissionStore.layer.pipe(Layer.provide(stores.postgres)))("a bucket of requests", (it) => {
  const minute = Effect.map(
    DateTime.now,
    (now) => (bucket: string, seconds: number) =>
      Effect.flatMap(AdmissionStore, ({ take }) =>
        Effect.map(take(bucket, 5, 60, DateTime.add(now, { seconds })), (taken) =>
          taken.admitted ? taken.remaining : "refused"
        )
      )
  )

  it.effect("is neither refilled nor emptied by a process whose clock is behind", () =>
    Effect.gen(function* () {
      const take = yield* minute
      assert.strictEqual(yield* take("b", 0), 4)
      assert.strictEqual(yield* take("b", -24), 3)
      assert.strictEqual(yield* take("b", 0), 2)
    })
  )

  it.effect("fills from now on if a clock more than its period ahead has taken from it", () =>
    Effect.gen(function* () {
      const take = yield* minute
      assert.strictEqual(yield* take("a", 61), 4)
      for (const left of [3, 2, 1, 0, "refused"]) assert.strictEqual(yield* take("a", 0), left)
      assert.strictEqual(yield* take("a", 12), 0)
      assert.strictEqual(yield* take("a", 12), "refused")
    })
  )

  it.effect("keeps the time of a clock that is ahead by its period or less", () =>
    Effect.gen(function* () {
      const take = yield* minute
      for (const left of [4, 3, 2, 1, 0]) assert.strictEqual(yield* take("c", 60), left)
      assert.strictEqual(yield* take("c", 0), "refused")
      assert.strictEqual(yield* take("c", 60), "refused")
    })
  )
})
