import { Effect, Layer, Schedule } from "effect"
import type { EndpointId } from "../domain/Ids.ts"
import { Hints } from "../process/Hints.ts"
import { makeFiberPlaces } from "../process/Places.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { EndpointActor } from "../webhooks/EndpointActor.ts"
import { LocalSenders } from "../webhooks/LocalSenders.ts"
import { TaskInbox } from "./TaskInbox.ts"

/** Endpoint actors that are started at once: each reads the last minute of its attempts. */
const startsMax = 8

/** Looks for a task whose step is in hand, each after twice the time; later the scheduler looks by itself. */
const looks = { schedule: Schedule.exponential("50 millis"), times: 6 } as const

/**
 * Tasks are left in the inbox of the `TaskScheduler`. Endpoints get volatile messages, or a call of their
 * sender if it is open in this process; deliveries whose message could not be sent are found by the
 * `DeliveryScheduler`.
 *
 * An actor runs in the context of this layer and not of the request that notified it: the request, its
 * body and its span would stay in memory as long.
 */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const inbox = yield* TaskInbox
    const endpointActor = yield* EndpointActor.client
    const senders = yield* LocalSenders
    const context = yield* Effect.context<never>()
    const hints = yield* Hints
    hints.subscribe("run", () => inbox.wake())
    const fork = yield* makeFiberPlaces
    const wake = Effect.sync(() => inbox.wake())
    const notifyEndpoints = Effect.fnUntraced(function* (ids: ReadonlyArray<EndpointId>) {
      const needMessage = yield* Effect.filter(ids, (id) =>
        Effect.map(senders.notify(id), (isNotified) => !isNotified)
      )
      yield* Effect.forEach(
        needMessage,
        (id) => Effect.ignore(endpointActor(id).Deliver(undefined, { discard: true })),
        { discard: true, concurrency: startsMax }
      )
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
      notifyEndpoints: (ids) => Effect.setContext(notifyEndpoints(ids), context)
    })
  })
).pipe(Layer.provideMerge(Layer.mergeAll(LocalSenders.layer, TaskInbox.layer)))
