import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { attemptLostSeconds, ownerDeadSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { DeliveryStore } from "../webhooks/DeliveryStore.ts"
import { TaskStore } from "./TaskStore.ts"
import { Process } from "../process/Process.ts"
import { Replays } from "../users/ManageReplays.ts"
import { Wake } from "../process/WorkNotifier.ts"

/** How many unowned tasks one sweep wakes: the rest is found by the next. */
const wakesPerSweepMax = 1000

/**
 * Most looks ask only for what fell due since the one before, so that the backlog of a flooded
 * endpoint costs nothing; this often one asks for all, which finds again what a lost message left.
 */
const fullLookMillis = 5000

/**
 * A full look also wakes the endpoints whose next delivery falls due until the next full look, or 1.5 s
 * after it: their actors are open by then, and what they look for first is found to be not due yet.
 * ADR 0106 and 0114.
 */
const openAhead = Duration.millis(fullLookMillis + 1500)

const millisBetween = (a: DateTime.Utc, b: DateTime.Utc): number =>
  DateTime.toEpochMillis(b) - DateTime.toEpochMillis(a)

/** Finds again what a dead process or a lost message left behind (architecture, rules 3 and 6). */
export class Sweeps extends Context.Service<
  Sweeps,
  {
    /** Frees what dead processes owned, and wakes the tasks that nobody owns. */
    readonly orphans: Effect.Effect<void, StoreUnavailable>
    /** Removes what nobody may ask for again: idempotency keys older than 24 hours. */
    readonly forgotten: Effect.Effect<void, StoreUnavailable>
    /** Wakes every endpoint with a due delivery, or soon one; answers when the next falls due. */
    readonly dueDeliveries: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
  }
>()("gateway/tasks/Rescuer") {
  static readonly layer = Layer.effect(
    Sweeps,
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const deliveries = yield* DeliveryStore
      const process = yield* Process
      const replays = yield* Replays
      const wake = yield* Wake
      let lastLook = Option.none<DateTime.Utc>()
      let lastFullLook = Option.none<DateTime.Utc>()
      const isFull = (now: DateTime.Utc) =>
        Option.match(lastFullLook, {
          onNone: () => true,
          onSome: (at) => Math.abs(millisBetween(at, now)) >= fullLookMillis
        })
      return Sweeps.of({
        orphans: Effect.gen(function* () {
          const since = yield* process.aliveSince
          const now = yield* DateTime.now
          yield* deliveries.skipDisabled(DateTime.subtract(now, { minutes: 1 }), now)
          const before = DateTime.subtract(since, {
            seconds: attemptLostSeconds - ownerDeadSeconds
          })
          const lost = yield* deliveries.freeLost(since, before, now)
          if (lost > 0)
            yield* Effect.logWarning(`${lost} webhook attempts were lost, sending again`)
          const unowned = yield* tasks.sweep(since, wakesPerSweepMax)
          yield* Effect.forEach(unowned, wake.task, { discard: true })
        }),
        forgotten: replays.forgetOld,
        dueDeliveries: Effect.gen(function* () {
          const now = yield* DateTime.now
          const all = isFull(now)
          const due = all
            ? yield* deliveries.due(Option.none(), now, DateTime.addDuration(now, openAhead))
            : yield* deliveries.due(lastLook, now, now)
          lastLook = Option.some(now)
          if (all) lastFullLook = lastLook
          yield* wake.endpoints(due.endpoints)
          return due.next
        })
      })
    })
  )
}
