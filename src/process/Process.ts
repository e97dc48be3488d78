import { Clock, Context, DateTime, Duration, Effect, Layer, Metric, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { AppConfig } from "../config/Config.ts"
import { DatabaseClock } from "../db/DatabaseClock.ts"
import {
  callLeaseSeconds,
  clockSkewSecondsMax,
  heartbeatSeconds,
  ownerDeadSeconds
} from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { ProcessStore } from "./ProcessStore.ts"

/** Rows of processes are kept for so long after their end (ADR 0104). */
const processRowHours = 24

/** This process: its id owns tasks and attempts while its heartbeat is recent. */
export class Process extends Context.Service<
  Process,
  {
    readonly id: string
    /**
     * A process with a heartbeat older than this is dead. Returns the epoch, so that no
     * process counts as dead, while this process has not written its own heartbeats
     * without a gap for as long: then the store or this process was away, and missing
     * heartbeats of others prove nothing.
     */
    readonly aliveSince: Effect.Effect<DateTime.Utc, StoreUnavailable>
    /** The same for calls and reservations, whose leases last longer. ADR 0177. */
    readonly callsAliveSince: Effect.Effect<DateTime.Utc, StoreUnavailable>
    /** Succeeds when the store responds. For `/readyz`. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/Process") {
  /**
   * Writes a heartbeat every few seconds. At the end of the scope the process is recorded as ended, so
   * that what it owned is free at once.
   */
  static readonly layer = Layer.effect(
    Process,
    Effect.gen(function* () {
      const store = yield* ProcessStore
      const clock = yield* DatabaseClock
      const { database } = yield* AppConfig
      const measureSkew = makeMeasureSkew()
      const id = `proc_${SecureRandom.uuidV4Unsafe()}`
      // One process locks the embedded store's folder: every earlier process is dead
      if (database._tag === "Embedded") yield* store.deleteAll
      else {
        const old = DateTime.subtract(yield* clock.now, { hours: processRowHours })
        yield* store.deleteOld(old)
      }
      const own = { newest: -Infinity, steadySince: 0 }
      const heartbeat = Effect.gen(function* () {
        const now = yield* measureSkew(clock.now)
        yield* store.heartbeat(id, now)
        const millis = DateTime.toEpochMillis(now)
        if (!isSteady(own.newest, millis)) own.steadySince = millis
        own.newest = millis
      })
      const leave = Effect.flatMap(clock.now, (now) => store.leave(id, now))
      yield* Effect.acquireRelease(heartbeat, () => Effect.ignore(leave))
      yield* heartbeat.pipe(
        Effect.catchCause((cause) => Effect.logWarning("The heartbeat failed", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
        Effect.forkScoped
      )
      const since = (leaseSeconds: number) =>
        Effect.map(clock.now, (time) => {
          const now = DateTime.toEpochMillis(time)
          const isReliable =
            isSteady(own.newest, now) && own.steadySince <= now - ownerDeadSeconds * 1000
          return DateTime.makeUnsafe(isReliable ? now - leaseSeconds * 1000 : 0)
        })
      return Process.of({
        id,
        aliveSince: since(ownerDeadSeconds),
        callsAliveSince: since(callLeaseSeconds),
        ping: store.ping
      })
    })
  )
}

/** Two heartbeats further apart than this, or a clock that was set back, are more than a late timer. */
const gapMillis = (ownerDeadSeconds * 1000) / 2

const isSteady = (newest: number, now: number): boolean => now >= newest && now - newest < gapMillis

const clockSkew = Metric.gauge("gateway_clock_skew_seconds", {
  description: "How far the clock of this process is ahead of the clock of the database."
})

/** Compares the clocks with each reading; logs when they begin and when they cease to differ. */
const makeMeasureSkew = () => {
  let isSkewed = false
  return Effect.fnUntraced(function* <E>(read: Effect.Effect<DateTime.Utc, E>) {
    const before = yield* Clock.currentTimeMillis
    const now = yield* read
    const after = yield* Clock.currentTimeMillis
    // The reading was made at some time between the two
    const skew = ((before + after) / 2 - DateTime.toEpochMillis(now)) / 1000
    yield* Metric.update(clockSkew, skew)
    const isNowSkewed = Math.abs(skew) - (after - before) / 2000 > clockSkewSecondsMax
    if (isNowSkewed !== isSkewed) {
      isSkewed = isNowSkewed
      const seconds = Math.abs(skew).toFixed(1)
      yield* isNowSkewed
        ? Effect.logError(
            `The clock of this process differs from the database's by ${seconds} s; synchronize it`
          )
        : Effect.logInfo("The clock of this process agrees with the database's again")
    }
    return now
  })
}
