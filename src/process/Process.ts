import { Clock, Context, DateTime, Duration, Effect, Layer, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { AppConfig } from "../config/Config.ts"
import { heartbeatSeconds, ownerDeadSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { ProcessStore } from "./ProcessStore.ts"

/** Rows of processes are kept for so long after their end (ADR 0104). */
const processRowHours = 24

/** This process: its id owns tasks and attempts while its heartbeat is young (architecture, rule 3). */
export class Process extends Context.Service<
  Process,
  {
    readonly id: string
    /**
     * Heartbeats older than this belong to the dead. The epoch, which makes nobody dead, while this
     * process has not itself been heard without a gap for as long: then the store, or this process,
     * was away, and the silence of others says nothing.
     */
    readonly aliveSince: Effect.Effect<DateTime.Utc>
    /** Answers when the store does. For `/readyz`. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/Process") {
  /** Beats from now on, and leaves with the scope, so that what it owned is free at once. */
  static readonly layer = Layer.effect(
    Process,
    Effect.gen(function* () {
      const store = yield* ProcessStore
      const { database } = yield* AppConfig
      const id = `proc_${SecureRandom.uuidV4Unsafe()}`
      // The embedded store's folder is locked for one process: whoever beat before is dead.
      if (database._tag === "Embedded") yield* store.forgetAll
      else {
        const old = DateTime.subtract(yield* DateTime.now, { hours: processRowHours })
        yield* store.forgetSilent(old)
      }
      const own = { newest: -Infinity, steadySince: 0 }
      const beat = Effect.gen(function* () {
        const now = yield* DateTime.now
        yield* store.beat(id, now)
        const millis = DateTime.toEpochMillis(now)
        if (!isSteady(own.newest, millis)) own.steadySince = millis
        own.newest = millis
      })
      const leave = Effect.flatMap(DateTime.now, (now) => store.leave(id, now))
      yield* Effect.acquireRelease(beat, () => Effect.ignore(leave))
      yield* beat.pipe(
        Effect.catchCause((cause) => Effect.logWarning("The heartbeat failed", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
        Effect.forkScoped
      )
      return Process.of({
        id,
        aliveSince: Effect.map(Clock.currentTimeMillis, (now) => {
          const since = now - ownerDeadSeconds * 1000
          const mayJudge = isSteady(own.newest, now) && own.steadySince <= since
          return DateTime.makeUnsafe(mayJudge ? since : 0)
        }),
        ping: store.ping
      })
    })
  )
}

/** A gap between two heartbeats (or a clock that was set back) that is more than a late timer. */
const gapMillis = (ownerDeadSeconds * 1000) / 2

const isSteady = (newest: number, now: number): boolean => now >= newest && now - newest < gapMillis
