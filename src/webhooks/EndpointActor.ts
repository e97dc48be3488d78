import { Effect, Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { EndpointId } from "../domain/Ids.ts"
import { WebhookDispatcher } from "./WebhookDispatcher.ts"

/** A delivery to this endpoint may be due. Volatile: the `DeliveryScheduler` sends it again. */
const Deliver = Rpc.make("Deliver")

/**
 * One actor for each webhook endpoint in each process: all deliveries of a process to an endpoint pass
 * it. The rate limit over all processes is enforced when deliveries are claimed. ADR 0104.
 */
export const EndpointActor = Entity.make("EndpointActor", [Deliver])

const decodeEndpointId = Schema.decodeUnknownEffect(EndpointId)

/**
 * Sends the due deliveries of its endpoint. The `DeliveryScheduler` notifies it every few seconds while
 * deliveries are due, so that an actor with work is never idle for long enough to end.
 */
export const layer = EndpointActor.toLayer(
  Effect.gen(function* () {
    const dispatcher = yield* WebhookDispatcher
    const { entityId } = yield* Entity.CurrentAddress
    const sender = yield* decodeEndpointId(entityId).pipe(
      Effect.flatMap(dispatcher.open),
      Effect.orDie
    )
    return EndpointActor.of({ Deliver: () => sender.deliver })
  }),
  { maxIdleTime: "1 minute", mailboxCapacity: 64, concurrency: "unbounded" }
)
