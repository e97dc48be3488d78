import { Context, Duration, Effect, Layer, RcMap } from "effect"
import { withoutServices } from "../domain/BackgroundContext.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { WebhookDispatcher } from "./WebhookDispatcher.ts"

/** An actor ends after this long without a message. While it has work, it gets one every few seconds. */
const idleTime = Duration.minutes(1)

/** The maximum number of open actors. Messages beyond it are dropped; the `DeliveryScheduler` resends them. */
const actorsMax = 50_000

/** The number of actors that may start at a time, because each reads its attempts of the last minute. */
const opensMax = 8

/**
 * The actors of webhook endpoints in this process, one for each endpoint with work. All of this process's deliveries to
 * an endpoint go through its actor, one message at a time. The rate limit over all processes is enforced when
 * deliveries are claimed. ADR 0003, 0104.
 */
export class EndpointActors extends Context.Service<
  EndpointActors,
  {
    /**
     * Tells these endpoints' actors that deliveries may be due, and starts the actors that are not running. Kept in
     * memory only: an actor that could not start gets the next message of the `DeliveryScheduler`.
     */
    readonly notify: (ids: ReadonlyArray<EndpointId>) => Effect.Effect<void>
    /** The number of running actors. */
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
      // All at once, because the map would close them one after the other, and each waits for its records
      yield* Effect.addFinalizer(() =>
        Effect.flatMap(ids, Effect.forEach(close, { concurrency: "unbounded", discard: true }))
      )
      // An actor runs in this layer's context, not in that of the request that notified it. Otherwise the request, its
      // body and its span would stay in memory as long as the actor
      const context = withoutServices(yield* Effect.context<never>())

      const notify = (id: EndpointId) =>
        RcMap.get(actors, id).pipe(
          Effect.flatMap(({ deliver }) => deliver),
          // The map would keep a failure for as long as it keeps an actor
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
