import { Effect, Layer } from "effect"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { EndpointActor } from "../webhooks/EndpointActor.ts"
import { LocalSenders } from "../webhooks/LocalSenders.ts"
import { TaskActor } from "./TaskActor.ts"

/** Endpoint actors that are started at once: each reads the last minute of its attempts. */
const startsMax = 8

/**
 * Sends the notifications as volatile messages, or calls the endpoint's sender if it is open in this
 * process. Work whose message could not be sent is found by the `Rescuer` and the `DeliveryScheduler`.
 */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const taskActor = yield* TaskActor.client
    const endpointActor = yield* EndpointActor.client
    const senders = yield* LocalSenders
    return WorkNotifier.of({
      notifyTask: (id) => Effect.ignore(taskActor(id).Run(undefined, { discard: true })),
      stopTask: (id) => Effect.ignore(taskActor(id).Stop(undefined, { discard: true })),
      notifyEndpoints: Effect.fnUntraced(function* (ids) {
        const needMessage = yield* Effect.filter(ids, (id) =>
          Effect.map(senders.notify(id), (isNotified) => !isNotified)
        )
        yield* Effect.forEach(
          needMessage,
          (id) => Effect.ignore(endpointActor(id).Deliver(undefined, { discard: true })),
          { discard: true, concurrency: startsMax }
        )
      })
    })
  })
).pipe(Layer.provideMerge(LocalSenders.layer))
