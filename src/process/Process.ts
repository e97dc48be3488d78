import { Clock, Context, DateTime, Duration, Effect, Layer, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { AppConfig } from "../config/Config.ts"
import { heartbeatSeconds, ownerDeadSeconds } from "../domain/Limits.ts"
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
     * A process with a heartbeat older than this is dead. Returns the epoch, so that no process counts as
     * dead, while this process has not written its own heartbeats without a gap for as long: then the
     * store or this process was away, and missing heartbeats of others prove nothing.
     */
    readonly aliveSince: Effect.Effect<DateTime.Utc>
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
      const { database } = yield* AppConfig
      const id = `proc_${SecureRandom.uuidV4Unsafe()}`
      // One process locks the embedded store's folder: every earlier process is dead
      if (database._tag === "Embedded") yield* store.deleteAll
      else {
        const old = DateTime.subtract(yield* DateTime.now, { hours: processRowHours })
        yield* store.deleteOld(old)
      }
      const own = { newest: -Infinity, steadySince: 0 }
      const heartbeat = Effect.gen(function* () {
        const now = yield* DateTime.now
        yield* store.heartbeat(id, now)
        const millis = DateTime.toEpochMillis(now)
        if (!isSteady(own.newest, millis)) own.steadySince = millis
        own.newest = millis
      })
      const leave = Effect.flatMap(DateTime.now, (now) => store.leave(id, now))
      yield* Effect.acquireRelease(heartbeat, () => Effect.ignore(leave))
      yield* heartbeat.pipe(
        Effect.catchCause((cause) => Effect.logWarning("The heartbeat failed", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
        Effect.forkScoped
      )
      return Process.of({
        id,
        aliveSince: Effect.map(Clock.currentTimeMillis, (now) => {
          const since = now - ownerDeadSeconds * 1000
          const isReliable = isSteady(own.newest, now) && own.steadySince <= since
          return DateTime.makeUnsafe(isReliable ? since : 0)
        }),
        ping: store.ping
      })
    })
  )
}

/** Two heartbeats further apart than this, or a clock that was set back, are more than a late timer. */
const gapMillis = (ownerDeadSeconds * 1000) / 2

const isSteady = (newest: number, now: number): boolean => now >= newest && now - newest < gapMillis
