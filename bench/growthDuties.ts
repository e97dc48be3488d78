/** The service's periodic duties, and the removal of the oldest day of a full store. */
import { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option } from "effect"
import { firstTaskId } from "../src/domain/Ids.ts"
import { retentionTasksMax } from "../src/domain/limits/Limits.ts"
import { CallStore } from "../src/passthrough/CallStore.ts"
import { ReservationStore } from "../src/passthrough/reservations/ReservationStore.ts"
import { PartitionStore } from "../src/process/retention/PartitionStore.ts"
import { QueueStore } from "../src/tasks/history/QueueStore.ts"
import { TaskRetentionStore } from "../src/tasks/privacy/TaskRetentionStore.ts"
import { TaskStore } from "../src/tasks/TaskStore.ts"
import { WalletStore } from "../src/wallet/WalletStore.ts"
import { DeliveryStore } from "../src/webhooks/DeliveryStore.ts"
import { dayTables } from "./growthFill.ts"
import { cpuMicros } from "./processes.ts"

const day = 86_400_000

/** The number of statements and the longest one, in milliseconds of Postgres's CPU and of real time. */
const repeated = <E, R>(
  pid: number,
  remove: Effect.Effect<number, E, R>,
  isLast = (n: number) => n < retentionTasksMax
) =>
  Effect.gen(function* () {
    let [removed, longest, longestCpu] = [0, 0, 0]
    const [began, cpuBegan] = [performance.now(), cpuMicros(pid)]
    while (true) {
      const [from, cpuFrom] = [performance.now(), cpuMicros(pid)]
      const n = yield* remove
      longest = Math.max(longest, performance.now() - from)
      longestCpu = Math.max(longestCpu, cpuMicros(pid) - cpuFrom)
      removed += n
      if (isLast(n)) break
    }
    const cpu = (cpuMicros(pid) - cpuBegan) / 1000
    return (
      `${removed}: CPU ${cpu.toFixed(0)} ms, the longest ${(longestCpu / 1000).toFixed(0)} ms; ` +
      `on the clock ${(performance.now() - began).toFixed(0)} ms, the longest ${longest.toFixed(0)} ms`
    )
  })

/** Drops the partitions of the oldest days, deletes their tasks, and removes the bodies of as many later days. */
export const retention = Effect.fnUntraced(function* (days: number) {
  const sql = yield* PgClient.PgClient
  const [oldest] = yield* sql<{ at: Date }>`SELECT min(created_at) AS at FROM tasks`
  const since = Math.floor(oldest!.at.getTime() / day) * day
  const until = since + days * day
  const partitions = yield* PartitionStore
  const tasks = yield* TaskRetentionStore
  const now = yield* DateTime.now
  const [backend] = yield* sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`
  const all = <E, R>(remove: Effect.Effect<number, E, R>, isLast?: (n: number) => boolean) =>
    repeated(backend!.pid, remove, isLast)
  // As in a running service, the partitions of the next days exist
  yield* partitions.maintain(now, 7, DateTime.makeUnsafe(since))
  const drop = partitions.maintain(now, 7, DateTime.makeUnsafe(until))
  const dropped = Effect.map(drop, (counts) => counts.dropped)
  console.log(`partitions dropped: ${yield* all(dropped, () => true)}`)
  const before = firstTaskId(until)
  console.log(`tasks deleted: ${yield* all(tasks.deleteBefore(before, retentionTasksMax))}`)
  const next = firstTaskId(until + days * day)
  console.log(`bodies scrubbed: ${yield* all(tasks.scrubBefore(next, retentionTasksMax))}`)
})

/** Vacuums the tables that fill and empty, and once analyzes today's partitions, which have no statistics at first. */
export const vacuum = Effect.fnUntraced(function* (analyze: boolean) {
  const sql = yield* PgClient.PgClient
  yield* sql`VACUUM delivery_queue, runs, holds`.unprepared
  if (!analyze) return
  const today = DateTime.formatIso(yield* DateTime.now)
    .slice(0, 10)
    .replaceAll("-", "")
  for (const table of ["events", "deliveries", "delivery_attempts", "calls"]) {
    yield* sql.unsafe(`ANALYZE ${table}_${today}`).unprepared
  }
})

/** The searches of each heartbeat. */
export const sweep = Effect.gen(function* () {
  const now = yield* DateTime.now
  const since = DateTime.subtract(now, { seconds: 10 })
  const tasks = yield* TaskStore
  const deliveries = yield* DeliveryStore
  yield* tasks.releaseOrphans(since, 5000)
  yield* tasks.queues(now)
  yield* deliveries.skipDisabled(DateTime.subtract(now, { minutes: 1 }), now)
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

/** Creates yesterday's partitions in the empty store, too, as a service that ran yesterday would have. */
export const yesterday = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const day = DateTime.formatIso(DateTime.subtract(yield* DateTime.now, { days: 1 })).slice(0, 10)
  for (const [table, column] of Object.entries(dayTables)) {
    yield* sql`SELECT day_partition_create(${table}, ${column}, ${day}::date)`
  }
})
