import { Effect, Layer } from "effect"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { EndpointActor } from "../webhooks/EndpointActor.ts"
import { LocalSenders } from "../webhooks/LocalSenders.ts"
import { TaskActor } from "./TaskActor.ts"

/** Actors that are opened at once: each reads its sliding minute. */
const opensMax = 8

/**
 * Sends the wake-ups as volatile messages, or calls the lane if it is open here. One that cannot be sent
 * is found by the sweeps.
 */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const taskActor = yield* TaskActor.client
    const endpointActor = yield* EndpointActor.client
    const lanes = yield* LocalSenders
    return WorkNotifier.of({
      task: (id) => Effect.ignore(taskActor(id).Run(undefined, { discard: true })),
      stop: (id) => Effect.ignore(taskActor(id).Stop(undefined, { discard: true })),
      endpoints: Effect.fnUntraced(function* (ids) {
        const unheard = yield* Effect.filter(ids, (id) =>
          Effect.map(lanes.tell(id), (told) => !told)
        )
        yield* Effect.forEach(
          unheard,
          (id) => Effect.ignore(endpointActor(id).Deliver(undefined, { discard: true })),
          { discard: true, concurrency: opensMax }
        )
      })
    })
  })
).pipe(Layer.provideMerge(LocalSenders.layer))
