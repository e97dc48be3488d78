import { Effect, Layer, Schema } from "effect"
import { TaskId } from "../domain/Ids.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { Hints } from "../process/Hints.ts"
import { makeFiberPlaces } from "../process/Places.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { EndpointActor } from "../webhooks/EndpointActor.ts"
import { LocalSenders } from "../webhooks/LocalSenders.ts"
import { TaskActor } from "./TaskActor.ts"

const isTaskId = Schema.is(TaskId)

/** Endpoint actors that are started at once: each reads the last minute of its attempts. */
const startsMax = 8

/**
 * Sends the notifications as volatile messages, or calls the endpoint's sender if it is open in this
 * process. Work whose message could not be sent is found by the `Rescuer` and the `DeliveryScheduler`.
 *
 * An actor runs in the context of this layer and not of the request that notified it: a task may wait for
 * an hour, and the request, its body and its span would stay in memory as long.
 */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const taskActor = yield* TaskActor.client
    const endpointActor = yield* EndpointActor.client
    const senders = yield* LocalSenders
    const context = yield* Effect.context<never>()
    const hints = yield* Hints
    const run = yield* makeFiberPlaces
    const runTask = (id: TaskId) =>
      Effect.setContext(Effect.ignore(taskActor(id).Run(undefined, { discard: true })), context)
    hints.subscribe("run", (id) => {
      if (isTaskId(id)) run(runTask(id))
    })
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
      notifyTask: runTask,
      stopTask: (id) =>
        Effect.suspend(() => {
          hints.publishUnsafe("stop", id)
          return Effect.setContext(
            Effect.ignore(taskActor(id).Stop(undefined, { discard: true })),
            context
          )
        }),
      offerTask: (id) => Effect.sync(() => hints.publishUnsafe("run", id)),
      notifyEndpoints: (ids) => Effect.setContext(notifyEndpoints(ids), context)
    })
  })
).pipe(Layer.provideMerge(LocalSenders.layer))
