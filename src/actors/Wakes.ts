import { Effect, Layer } from "effect"
import { Wake } from "../services/Wake.ts"
import { EndpointActor } from "./EndpointActor.ts"
import { TaskActor } from "./TaskActor.ts"

/** Sends the wake-ups as volatile messages. One that cannot be sent is found by the sweeps. */
export const layer = Layer.effect(
  Wake,
  Effect.gen(function* () {
    const taskActor = yield* TaskActor.client
    const endpointActor = yield* EndpointActor.client
    return Wake.of({
      task: (id) => Effect.ignore(taskActor(id).Run(undefined, { discard: true })),
      stop: (id) => Effect.ignore(taskActor(id).Stop(undefined, { discard: true })),
      endpoints: (ids) =>
        Effect.forEach(
          ids,
          (id) => Effect.ignore(endpointActor(id).Deliver(undefined, { discard: true })),
          { discard: true }
        )
    })
  })
)
