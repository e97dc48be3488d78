import { Effect, Layer } from "effect"
import type { EndpointId } from "../domain/Ids.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { EndpointActor } from "../webhooks/EndpointActor.ts"
import { LocalSenders } from "../webhooks/LocalSenders.ts"
import { TaskActor } from "./TaskActor.ts"

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
      notifyTask: (id) =>
        Effect.setContext(Effect.ignore(taskActor(id).Run(undefined, { discard: true })), context),
      stopTask: (id) =>
        Effect.setContext(Effect.ignore(taskActor(id).Stop(undefined, { discard: true })), context),
      notifyEndpoints: (ids) => Effect.setContext(notifyEndpoints(ids), context)
    })
  })
).pipe(Layer.provideMerge(LocalSenders.layer))
