/** What the service does by itself at intervals, and the end of the oldest day of a full store. */
import { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option } from "effect"
import { firstTaskId } from "../src/domain/Ids.ts"
import { retentionTasksMax } from "../src/domain/Limits.ts"
import { CallStore } from "../src/passthrough/CallStore.ts"
import { ReservationStore } from "../src/passthrough/reservations/ReservationStore.ts"
import { PartitionStore } from "../src/process/PartitionStore.ts"
import { QueueStore } from "../src/tasks/history/QueueStore.ts"
import { TaskRetentionStore } from "../src/tasks/privacy/TaskRetentionStore.ts"
import { TaskStore } from "../src/tasks/TaskStore.ts"
import { WalletStore } from "../src/wallet/WalletStore.ts"
import { DeliveryStore } from "../src/webhooks/DeliveryStore.ts"

const day = 86_400_000

/** The longest statement, and all of them, in milliseconds. */
const repeated = <E, R>(remove: Effect.Effect<number, E, R>) =>
  Effect.gen(function* () {
    let removed = 0
    let longest = 0
    const began = performance.now()
    while (true) {
      const from = performance.now()
      const n = yield* remove
      longest = Math.max(longest, performance.now() - from)
      removed += n
      if (n < retentionTasksMax) break
    }
    const all = performance.now() - began
    return `${removed} in ${all.toFixed(0)} ms, the longest statement ${longest.toFixed(0)} ms`
  })

/** Drops its partitions, deletes its tasks, and removes the bodies of the day after. */
export const retention = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [oldest] = yield* sql<{ at: Date }>`SELECT min(created_at) AS at FROM tasks`
  const since = Math.floor(oldest!.at.getTime() / day) * day
  const until = since + day
  const partitions = yield* PartitionStore
  const tasks = yield* TaskRetentionStore
  const began = performance.now()
  const now = yield* DateTime.now
  // What the service has done before: the partitions of the next days are there
  const first = yield* partitions.maintain(now, 7, DateTime.makeUnsafe(since))
  const made = performance.now()
  const { dropped } = yield* partitions.maintain(now, 7, DateTime.makeUnsafe(until))
  console.log(
    `${first.made} partitions made in ${(made - began).toFixed(0)} ms; ` +
      `${dropped} partitions of a day dropped in ${(performance.now() - made).toFixed(0)} ms`
  )
  const before = firstTaskId(until)
  console.log(`tasks deleted: ${yield* repeated(tasks.deleteBefore(before, retentionTasksMax))}`)
  const next = firstTaskId(until + day)
  console.log(`bodies scrubbed: ${yield* repeated(tasks.scrubBefore(next, retentionTasksMax))}`)
})

/** What is looked for at each heartbeat. */
export const sweep = Effect.gen(function* () {
  const now = yield* DateTime.now
  const since = DateTime.subtract(now, { seconds: 10 })
  const tasks = yield* TaskStore
  const deliveries = yield* DeliveryStore
  yield* tasks.releaseOrphans(since, 5000)
  yield* tasks.queues(now)
  yield* deliveries.requeueLost(since, since, now, 5000)
  yield* (yield* CallStore).orphans(since, DateTime.subtract(now, { hours: 1 }), 100)
  yield* (yield* ReservationStore).lost(since, 100)
  yield* (yield* QueueStore).depths(now)
  yield* (yield* WalletStore).drift
  return 1
})

export const audit = Effect.gen(function* () {
  const now = yield* DateTime.now
  const page = { after: Option.none(), wallets: 100, entries: 1000, now }
  yield* (yield* WalletStore).audit(page)
  return 1
})

/** The hourly jobs when nothing is old enough. */
export const nothingOld = Effect.gen(function* () {
  const now = yield* DateTime.now
  const store = yield* TaskRetentionStore
  yield* (yield* PartitionStore).maintain(now, 7, DateTime.subtract(now, { days: 40 }))
  const before = firstTaskId(DateTime.toEpochMillis(DateTime.subtract(now, { days: 40 })))
  yield* store.deleteBefore(before, 1000)
  return 1
})
