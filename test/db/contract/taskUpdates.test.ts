import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TaskId } from "../../../src/domain/Ids.ts"
import { TaskRetentionStore } from "../../../src/tasks/privacy/TaskRetentionStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import { accept, finish, newWallet, walletStores } from "../../support/wallets.ts"

/** ADR 0112 */

const count = 400

/** The number of task updates so far, and of those that wrote no index entry. */
const updatesSoFar = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ all: number; inPlace: number }>`
    SELECT n_tup_upd::int AS "all", n_tup_hot_upd::int AS in_place
    FROM pg_stat_user_tables WHERE relname = 'tasks'`
  return row!
})

/** On the embedded store: both are Postgres 18, and no transaction of another test is open in it. */
describe("a task", () => {
  liveLayer(
    Layer.provideMerge(Layer.merge(walletStores, TaskRetentionStore.layer), singleStores.embedded)
  )((it) => {
    it.effect("starts, ends and is scrubbed in its page without a new index entry", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const retention = yield* TaskRetentionStore
        const before = yield* updatesSoFar
        const updates = Effect.map(updatesSoFar, ({ all, inPlace }) => ({
          all: all - before.all,
          inPlace: inPlace - before.inPlace
        }))
        const user = yield* newWallet(count)
        const body = { prompt: "a turtle that swims in a calm sea, seen from below ".repeat(8) }
        const made = yield* Effect.forEach(
          Array.from({ length: count }),
          () => accept(user, 1, { body }),
          { concurrency: 32 }
        )
        yield* sql`UPDATE tasks SET status = 'processing', started_at = created_at, updated_at = created_at`
        yield* Effect.forEach(made, ({ taskId }) => finish(taskId, 1), { concurrency: 32 })
        assert.deepStrictEqual(yield* updates, { all: 2 * count, inPlace: 2 * count })
        const after = TaskId.make("ffffffff-ffff-7fff-bfff-ffffffffffff")
        assert.strictEqual(yield* retention.scrubBefore(after, count), count)
        assert.deepStrictEqual(yield* updates, { all: 3 * count, inPlace: 3 * count })
      })
    )
  })

  liveLayer(
    Layer.provideMerge(Layer.merge(walletStores, TaskRetentionStore.layer), singleStores.embedded)
  )((it) => {
    it.effect("is scrubbed even if a process died between the two halves of a removal", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const retention = yield* TaskRetentionStore
        const { taskId } = yield* accept(yield* newWallet(1), 1, {})
        yield* finish(taskId, 1)
        yield* sql`UPDATE tasks SET body = '{"prompt": "a turtle"}'`
        const bodies = Effect.map(
          sql<{ left: number }>`SELECT count(*)::int AS left FROM tasks WHERE body <> 'null'`,
          ([row]) => row!.left
        )
        const all = yield* bodies
        const after = "ffffffff-ffff-7fff-bfff-ffffffffffff"
        yield* sql`SELECT task_bodies_remove(${after}::uuid, ${all}::int, 0)`
        assert.strictEqual(yield* bodies, Math.ceil(all / 2))
        assert.strictEqual(yield* retention.scrubBefore(TaskId.make(after), all), all)
        assert.strictEqual(yield* bodies, 0)
        assert.strictEqual(yield* retention.scrubBefore(TaskId.make(after), all), 0)
      })
    )
  })
})
