import { Context, DateTime, Effect, Layer } from "effect"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { QueueStore } from "./QueueStore.ts"
import type { QueueDepths } from "./QueueStore.ts"

/** Counts waiting and running work over all processes. docs/reference/http.md#queues */
export class Queues extends Context.Service<
  Queues,
  { readonly depths: Effect.Effect<QueueDepths, StoreUnavailable> }
>()("gateway/tasks/Queues") {
  static readonly layer = Layer.effect(
    Queues,
    Effect.map(QueueStore, (store) =>
      Queues.of({ depths: Effect.flatMap(DateTime.now, store.depths) })
    )
  )
}
