import { Effect, Layer, Schema } from "effect"
import { EndpointId } from "../domain/Ids.ts"
import { Hints } from "../process/Hints.ts"
import { makeFiberPlaces } from "../process/Places.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { EndpointActors } from "../webhooks/EndpointActors.ts"
import { TaskInbox } from "./TaskInbox.ts"

const isEndpointId = Schema.is(EndpointId)

/** Tasks are left in the inbox of the `TaskScheduler`, endpoints get a message to their actor. */
export const layer = Layer.effect(
  WorkNotifier,
  Effect.gen(function* () {
    const inbox = yield* TaskInbox
    const endpoints = yield* EndpointActors
    const hints = yield* Hints
    hints.subscribe("run", () => inbox.wake())
    const run = yield* makeFiberPlaces
    hints.subscribe("endpoint", (id) => {
      if (isEndpointId(id)) run(endpoints.notify([id]))
    })
    return WorkNotifier.of({
      notifyTask: () => Effect.sync(() => inbox.wake()),
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
