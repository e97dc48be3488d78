import { Effect, Layer, Schedule, Schema, Semaphore } from "effect"
import { EndpointId } from "../../domain/Ids.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { makeFiberSlots } from "../../process/SlotArray.ts"
import { EndpointActors } from "../../webhooks/EndpointActors.ts"
import { TaskInbox } from "./TaskInbox.ts"

/**
 * Checks for a task whose step is in hand, doubling the wait each time; after these the scheduler's own scan finds
 * it.
 */
const looks = { schedule: Schedule.exponential("50 millis"), times: 6 } as const

/** Most endpoints that hints notify concurrently. */
const hintedMax = 8

const isEndpointId = Schema.is(EndpointId)

/** Puts tasks into the inbox of the `TaskScheduler` and sends messages to the actors of endpoints. */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const inbox = yield* TaskInbox
    const endpoints = yield* EndpointActors
    const hints = yield* Hints
    const fork = yield* makeFiberSlots()
    const wake = Effect.sync(() => inbox.wake())
    hints.subscribe("run", () => inbox.wake())
    // Thousands come at once after the death of a process, and each actor opens with a statement
    const hinted = yield* Semaphore.make(hintedMax)
    hints.subscribe("endpoint", (id) => {
      if (isEndpointId(id)) fork(hinted.withPermit(endpoints.notify([id])))
    })
    return WorkNotifier.of({
      notifyDue: (when) =>
        when === "now" ? wake : Effect.sync(() => fork(Effect.repeat(wake, looks))),
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
