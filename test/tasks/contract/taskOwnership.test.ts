import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { TaskId } from "../../../src/domain/Ids.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import { describeStores } from "../../support/stores.ts"
import {
  accept,
  credits,
  finish,
  newTaskId,
  newWallet,
  walletOf,
  walletStores
} from "../../support/wallets.ts"

/** ARCHITECTURE.md#rules-of-safety */

const polls = { name: "polls" }

/** The epoch in which this process has the next task. */
const claimed = (owner: string) =>
  Effect.gen(function* () {
    const tasks = yield* TaskStore
    const now = yield* DateTime.now
    const [one] = yield* tasks.claim({ queue: "submits", limit: 1, owner, now })
    assert(one !== undefined)
    return { taskId: one.task.id, epoch: one.epoch }
  })

const begin = (run: { readonly taskId: TaskId; readonly epoch: number }) =>
  Effect.gen(function* () {
    const tasks = yield* TaskStore
    const attempt = { n: 1, vendor: "v", accountId: "a", bodyHash: new Uint8Array([1]) }
    return yield* tasks.beginAttempt({
      ...run,
      ...attempt,
      queue: { name: "submits" },
      now: yield* DateTime.now
    })
  })

describeStores("the owner of a task", (database) => {
  const stores = walletStores.pipe(Layer.provideMerge(database))

  it.effect("changes nothing of it after another process has taken it over", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const sql = yield* SqlClient.SqlClient
      const now = yield* DateTime.now
      const userId = yield* newWallet(100)
      const { taskId } = yield* accept(userId, 8)
      const former = yield* claimed("proc_a")
      yield* sql`UPDATE runs SET owner = NULL`
      const { epoch } = yield* claimed("proc_b")
      const end = (epoch: number) => finish(taskId, 8, { epoch: Option.some(epoch) })
      const before = yield* sql`SELECT * FROM runs`

      assert.isFalse(yield* begin(former))
      assert.isFalse(yield* tasks.endStep({ ...former, now, next: { dueAt: now, queue: polls } }))
      yield* tasks.handOver(taskId, former.epoch)
      yield* tasks.releaseRun(taskId, former.epoch)
      assert.strictEqual((yield* end(former.epoch))._tag, "Fenced")
      assert.deepStrictEqual(yield* sql`SELECT * FROM runs`, before)
      assert.isEmpty(yield* sql`SELECT FROM vendor_attempts`)
      assert.deepInclude(yield* walletOf(userId), { settled: credits(100), held: credits(8) })

      assert.strictEqual((yield* end(epoch))._tag, "Finished")
      assert.deepInclude(yield* walletOf(userId), { settled: credits(92), held: credits(0) })
    }).pipe(Effect.provide(stores))
  )

  it.effect("loses a submit without a response to a cancellation, but no known job", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const sql = yield* SqlClient.SqlClient
      const now = yield* DateTime.now
      yield* accept(yield* newWallet(100), 8, {}, [newTaskId()])
      const [open, known] = [yield* claimed("proc_a"), yield* claimed("proc_a")]
      assert.isTrue((yield* begin(open)) && (yield* begin(known)))
      yield* tasks.endStep({
        ...known,
        attempt: { n: 1, state: "submitted", handle: { job: "j" }, failure: null },
        now,
        next: { dueAt: now, queue: polls }
      })
      for (const { taskId } of [open, known]) {
        assert.strictEqual((yield* finish(taskId, undefined))._tag, "Finished")
      }
      const attempts = yield* sql`SELECT task_id, state, handle FROM vendor_attempts`
      assert.sameDeepMembers(
        [...attempts],
        [
          { taskId: open.taskId, state: "ambiguous", handle: null },
          { taskId: known.taskId, state: "submitted", handle: { job: "j" } }
        ]
      )
    }).pipe(Effect.provide(stores))
  )
})
