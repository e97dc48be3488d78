import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import { describeStores } from "../../support/stores.ts"
import {
  accept,
  credits,
  finish,
  newWallet,
  walletOf,
  walletStores
} from "../../support/wallets.ts"

/** ARCHITECTURE.md#rules-of-safety */
describeStores("a process whose task another process has taken over", (database) => {
  it.effect("changes nothing of it: no attempt, no next step, no handover, no end, no charge", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const sql = yield* SqlClient.SqlClient
      const now = yield* DateTime.now
      const userId = yield* newWallet(100)
      const { taskId } = yield* accept(userId, 8)
      const claim = (owner: string) =>
        Effect.map(tasks.claim({ queue: "submits", limit: 1, owner, now }), ([one]) => one!.epoch)
      const former = yield* claim("proc_a")
      yield* sql`UPDATE runs SET owner = NULL WHERE task_id = ${taskId}`
      const epoch = yield* claim("proc_b")
      const end = (epoch: number) => finish(taskId, 8, { epoch: Option.some(epoch) })
      const before = yield* sql`SELECT * FROM runs WHERE task_id = ${taskId}`

      const attempt = { taskId, n: 1, vendor: "v", accountId: "a", bodyHash: new Uint8Array([1]) }
      const queue = { name: "polls" }
      assert.isFalse(yield* tasks.beginAttempt({ ...attempt, epoch: former, queue, now }))
      assert.isFalse(
        yield* tasks.endStep({ taskId, epoch: former, now, next: { dueAt: now, queue } })
      )
      yield* tasks.handOver(taskId, former)
      yield* tasks.releaseRun(taskId, former)
      assert.strictEqual((yield* end(former))._tag, "Fenced")
      assert.deepStrictEqual(yield* sql`SELECT * FROM runs WHERE task_id = ${taskId}`, before)
      assert.isEmpty(yield* sql`SELECT FROM vendor_attempts WHERE task_id = ${taskId}`)
      assert.deepInclude(yield* walletOf(userId), { settled: credits(100), held: credits(8) })

      assert.strictEqual((yield* end(epoch))._tag, "Finished")
      assert.deepInclude(yield* walletOf(userId), { settled: credits(92), held: credits(0) })
    }).pipe(Effect.provide(walletStores), Effect.provide(database))
  )
})
