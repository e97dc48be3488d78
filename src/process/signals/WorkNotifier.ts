import { Context, Effect, Layer } from "effect"
import type { EndpointId, TaskId } from "../../domain/Ids.ts"

/**
 * Notifies actors of work after a commit, including those of other processes that may take it. Messages are
 * volatile: the `TaskScheduler` and the `DeliveryScheduler` find work whose message was lost.
 */
export class WorkNotifier extends Context.Service<
  WorkNotifier,
  {
    /** A task is due, or will be at the end of its step, which some process has in hand. */
    readonly notifyDue: (when: "now" | "after its step") => Effect.Effect<void>
    /** The task was ended from outside: its step stops, and the vendor is asked to cancel the job. */
    readonly stopTask: (id: TaskId) => Effect.Effect<void>
    /** The task is due, and this process does not take it, so another one may. */
    readonly offerTask: (id: TaskId) => Effect.Effect<void>
    /** Deliveries to these endpoints may be due. */
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
