import { Context, Duration, Effect, Layer, RcMap } from "effect"
import { withoutServices } from "../domain/BackgroundContext.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { WebhookDispatcher } from "./WebhookDispatcher.ts"

/** An actor ends after this long without a message. With work it gets one every few seconds. */
const idleTime = Duration.minutes(1)

/** Messages above this number are lost; the `DeliveryScheduler` resends them. */
const actorsMax = 50_000

/** Actors opened at a time: each reads the last minute of its attempts. */
const opensMax = 8

/**
 * The actors of the webhook endpoints in this process: one for each endpoint with work, so that all
 * deliveries of a process to an endpoint go through it, one message at a time. The rate limit over all
 * processes is enforced when deliveries are claimed. ADR 0003, 0104.
 */
export class EndpointActors extends Context.Service<
  EndpointActors,
  {
    /**
     * Deliveries to these endpoints may be due. Opens actors that are not open. Volatile: an actor that could
     * not be opened gets the next message of the `DeliveryScheduler`.
     */
    readonly notify: (ids: ReadonlyArray<EndpointId>) => Effect.Effect<void>
    /** Number of open actors. */
    readonly count: Effect.Effect<number>
  }
>()("gateway/webhooks/EndpointActors") {
  static readonly layer = Layer.effect(
    EndpointActors,
    Effect.gen(function* () {
      const dispatcher = yield* WebhookDispatcher
      const actors = yield* RcMap.make({
        lookup: dispatcher.open,
        idleTimeToLive: idleTime,
        capacity: actorsMax
      })
      const ids = Effect.map(RcMap.keys(actors), (keys) => [...keys])
      const close = (id: EndpointId) => RcMap.invalidate(actors, id)
      // All at once: the map would close them one after the other, and each waits for its records
      yield* Effect.addFinalizer(() =>
        Effect.flatMap(ids, Effect.forEach(close, { concurrency: "unbounded", discard: true }))
      )
      // An actor runs in the context of this layer and not of the request that notified it: the
      // request, its body and its span would stay in memory just as long
      const context = withoutServices(yield* Effect.context<never>())

      const notify = (id: EndpointId) =>
        RcMap.get(actors, id).pipe(
          Effect.flatMap(({ deliver }) => deliver),
          // The map would keep the failure as long as an actor
          Effect.catchCause((cause) =>
            Effect.andThen(Effect.logDebug(`The actor of ${id} is not open`, cause), close(id))
          ),
          Effect.scoped
        )
      return EndpointActors.of({
        notify: (all) =>
          Effect.setContext(
            Effect.forEach(all, notify, { discard: true, concurrency: opensMax }),
            context
          ),
        count: Effect.map(ids, (open) => open.length)
      })
    })
  )
}
