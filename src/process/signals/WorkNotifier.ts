import { Context, Effect, Layer } from "effect"
import type { EndpointId, TaskId } from "../../domain/Ids.ts"

/**
 * Announces work after a commit, also to other processes that may take it. Messages can be lost: the `TaskScheduler`
 * and the `DeliveryScheduler` find work whose message was lost.
 */
export class WorkNotifier extends Context.Service<
  WorkNotifier,
  {
    /** Announces a task that is due now, or that becomes due when its current step (in any process) ends. */
    readonly notifyDue: (when: "now" | "after its step") => Effect.Effect<void>
    /** Announces that a task was ended from outside: its step stops, and the vendor is asked to cancel the job. */
    readonly stopTask: (id: TaskId) => Effect.Effect<void>
    /** Offers a due task to the other processes, because this process does not take it. */
    readonly offerTask: (id: TaskId) => Effect.Effect<void>
    /** Announces that deliveries to these endpoints may be due. */
    readonly notifyEndpoints: (ids: ReadonlyArray<EndpointId>) => Effect.Effect<void>
  }
>()("gateway/process/WorkNotifier") {
  /** Does nothing, for tests that call the services themselves. */
  static readonly layerNoop = Layer.succeed(WorkNotifier, {
    notifyDue: () => Effect.void,
    stopTask: () => Effect.void,
    offerTask: () => Effect.void,
    notifyEndpoints: () => Effect.void
  })
}
