import { Context, DateTime, Effect, Layer } from "effect"
import type { Option } from "effect"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { DeliveryStore } from "../store/DeliveryStore.ts"
import { TaskStore } from "../store/TaskStore.ts"
import { Metering } from "./Metering.ts"
import { Process } from "./Process.ts"
import { Wake } from "./Wake.ts"

/** How many unowned tasks one sweep wakes: the rest is found by the next. */
const wakesPerSweepMax = 1000

/** Finds again what a dead process or a lost message left behind (architecture, rules 3 and 6). */
export class Sweeps extends Context.Service<
  Sweeps,
  {
    /** Frees what dead processes owned, and wakes the tasks that nobody owns. */
    readonly orphans: Effect.Effect<void, StoreUnavailable>
    /** Wakes every endpoint with a due delivery; answers when the next one falls due. */
    readonly dueDeliveries: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
  }
>()("gateway/services/Sweeps") {
  static readonly layer = Layer.effect(
    Sweeps,
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const deliveries = yield* DeliveryStore
      const process = yield* Process
      const wake = yield* Wake
      const metering = yield* Metering
      return Sweeps.of({
        orphans: Effect.gen(function* () {
          const since = yield* process.aliveSince
          const now = yield* DateTime.now
          yield* deliveries.skipDisabled(DateTime.subtract(now, { minutes: 1 }), now)
          const lost = yield* deliveries.freeLost(since, now)
          if (lost > 0)
            yield* Effect.logWarning(`${lost} webhook attempts were lost, sending again`)
          const calls = yield* metering.sweep
          if (calls > 0)
            yield* Effect.logWarning(`${calls} calls were lost with their process, released`)
          const unowned = yield* tasks.sweep(since, wakesPerSweepMax)
          yield* Effect.forEach(unowned, wake.task, { discard: true })
        }),
        dueDeliveries: Effect.gen(function* () {
          const due = yield* deliveries.due(yield* DateTime.now)
          yield* wake.endpoints(due.endpoints)
          return due.next
        })
      })
    })
  )
}
