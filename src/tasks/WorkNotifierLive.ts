import { Effect, Layer } from "effect"
import { OpenLanes } from "../webhooks/LocalSenders.ts"
import { Wake } from "../process/WorkNotifier.ts"
import { EndpointActor } from "../webhooks/EndpointActor.ts"
import { TaskActor } from "./TaskActor.ts"

/** Actors that are opened at once: each reads its sliding minute. */
const opensMax = 8

/**
 * Sends the wake-ups as volatile messages, or calls the lane if it is open here. One that cannot be sent
 * is found by the sweeps.
 */
export const layer = Layer.effect(
  Wake,
  Effect.gen(function* () {
    const taskActor = yield* TaskActor.client
    const endpointActor = yield* EndpointActor.client
    const lanes = yield* OpenLanes
    return Wake.of({
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
).pipe(Layer.provideMerge(OpenLanes.layer))
