import { Context, Effect, Layer } from "effect"
import type { EndpointId, TaskId } from "../domain/Ids.ts"

/**
 * Tells the actors, after a commit, that there is work. The message is volatile: one that is lost
 * is found again by the sweeper and the alarm clock (architecture).
 */
export class WorkNotifier extends Context.Service<
  WorkNotifier,
  {
    readonly task: (id: TaskId) => Effect.Effect<void>
    /** The task was ended from outside: whoever runs it stops, and its vendor is told. */
    readonly stop: (id: TaskId) => Effect.Effect<void>
    readonly endpoints: (ids: ReadonlyArray<EndpointId>) => Effect.Effect<void>
  }
>()("gateway/process/WorkNotifier") {
  /** Tells nobody: for tests that call the services themselves. */
  static readonly layerNoop = Layer.succeed(WorkNotifier, {
    task: () => Effect.void,
    stop: () => Effect.void,
    endpoints: () => Effect.void
  })
}
