import { Context, DateTime, Duration, Effect, Layer, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { AppConfig } from "../Config.ts"
import { heartbeatSeconds, ownerDeadSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { ProcessStore } from "../store/ProcessStore.ts"

/** Rows of processes are kept for so long after their end. */
const processRowHours = 24

/** This process: its id owns tasks and attempts while its heartbeat is young (architecture, rule 3). */
export class Process extends Context.Service<
  Process,
  {
    readonly id: string
    /**
     * Heartbeats older than this belong to the dead. A process that could not beat itself for a while
     * (it was paused, the store was away, the clock jumped) calls nobody dead until the others have
     * had the time to beat again: the epoch then.
     */
    readonly aliveSince: Effect.Effect<DateTime.Utc>
    /** Answers when the store does. For `/readyz`. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/services/Process") {
  /** Beats from now on, and leaves with the scope, so that what it owned is free at once. */
  static readonly layer = Layer.effect(
    Process,
    Effect.gen(function* () {
      const store = yield* ProcessStore
      const { database } = yield* AppConfig
      const id = `proc_${SecureRandom.uuidV4Unsafe()}`
      const started = yield* DateTime.now
      // The embedded store's folder is locked for one process: whoever beat before is dead.
      if (database._tag === "Embedded") yield* store.forgetAll
      else yield* store.forgetSilent(DateTime.subtract(started, { hours: processRowHours }))
      const rhythm = new Rhythm(DateTime.toEpochMillis(started))
      const beat = Effect.gen(function* () {
        const now = yield* DateTime.now
        yield* store.beat(id, now)
        rhythm.beat(DateTime.toEpochMillis(now))
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
        aliveSince: Effect.map(DateTime.now, (now) =>
          rhythm.isSteady(DateTime.toEpochMillis(now))
            ? DateTime.subtract(now, { seconds: ownerDeadSeconds })
            : DateTime.makeUnsafe(0)
        ),
        ping: store.ping
      })
    })
  )
}

/** Two beats further apart are a gap; the other processes may then have one that is little longer. */
const gapMillis = (ownerDeadSeconds / 2) * 1000

/** Were this process's own beats regular for as long as it takes to call another one dead? */
class Rhythm {
  #last: number
  #steadySince = -Infinity

  constructor(startMillis: number) {
    this.#last = startMillis
  }

  beat(nowMillis: number): void {
    if (this.#isGap(nowMillis)) this.#steadySince = nowMillis
    this.#last = nowMillis
  }

  isSteady(nowMillis: number): boolean {
    return !this.#isGap(nowMillis) && nowMillis - this.#steadySince >= ownerDeadSeconds * 1000
  }

  #isGap(nowMillis: number): boolean {
    return Math.abs(nowMillis - this.#last) > gapMillis
  }
}
