import { Effect, Layer } from "effect"
import { OpenLanes } from "../services/OpenLanes.ts"
import { Wake } from "../services/Wake.ts"
import { EndpointActor } from "./EndpointActor.ts"
import { TaskActor } from "./TaskActor.ts"

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
      endpoints: (ids) =>
        Effect.forEach(
          ids,
          (id) =>
            Effect.flatMap(lanes.tell(id), (isTold) =>
              isTold
                ? Effect.void
                : Effect.ignore(endpointActor(id).Deliver(undefined, { discard: true }))
            ),
          { discard: true }
        )
    })
  })
).pipe(Layer.provideMerge(OpenLanes.layer))
