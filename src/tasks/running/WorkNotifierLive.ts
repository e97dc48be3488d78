import { Effect, Layer, Schedule, Schema, Semaphore } from "effect"
import { EndpointId } from "../../domain/Ids.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { makeFiberSlots } from "../../process/SlotArray.ts"
import { EndpointActors } from "../../webhooks/EndpointActors.ts"
import { TaskInbox } from "./TaskInbox.ts"

/**
 * Rechecks a task whose step is in hand, doubling the wait each time. After the last recheck the scheduler's own scan
 * finds the task.
 */
const rechecks = { schedule: Schedule.exponential("50 millis"), times: 6 } as const

/** The maximum number of endpoints that hints notify concurrently. */
const hintedMax = 8

const isEndpointId = Schema.is(EndpointId)

/** Puts tasks into the `TaskScheduler`'s inbox and sends messages to the actors of endpoints. */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const inbox = yield* TaskInbox
    const endpoints = yield* EndpointActors
    const hints = yield* Hints
    const fork = yield* makeFiberSlots()
    const wake = Effect.sync(() => inbox.wake())
    hints.subscribe("run", () => inbox.wake())
    // When a process dies, thousands of hints arrive at once, and each actor starts with a statement
    const hinted = yield* Semaphore.make(hintedMax)
    hints.subscribe("endpoint", (id) => {
      if (isEndpointId(id)) fork(hinted.withPermit(endpoints.notify([id])))
    })
    return WorkNotifier.of({
      notifyDue: (when) =>
        when === "now" ? wake : Effect.sync(() => fork(Effect.repeat(wake, rechecks))),
      stopTask: (id) =>
        Effect.sync(() => {
          hints.publishUnsafe("stop", id)
          inbox.stop(id)
        }),
      offerTask: (id) => Effect.sync(() => hints.publishUnsafe("run", id)),
      notifyEndpoints: endpoints.notify
    })
  })
).pipe(Layer.provideMerge(Layer.mergeAll(EndpointActors.layer, TaskInbox.layer)))
