import { Effect, Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { EndpointId } from "../domain/Ids.ts"
import { WebhookDispatcher } from "./WebhookDispatcher.ts"

/** Something may be due for this endpoint. Volatile: the alarm clock says it again. */
const Deliver = Rpc.make("Deliver")

/**
 * One actor per webhook endpoint in each process: it alone sends to it there. Several processes keep the
 * sliding limit together, when they claim (ADR 0104).
 */
export const EndpointActor = Entity.make("EndpointActor", [Deliver])

const decodeEndpointId = Schema.decodeUnknownEffect(EndpointId)

/**
 * Sends its endpoint's due deliveries. The alarm clock says again every few seconds that something is
 * due, so that an actor with work is never idle for long enough to end.
 */
export const layer = EndpointActor.toLayer(
  Effect.gen(function* () {
    const dispatcher = yield* WebhookDispatcher
    const { entityId } = yield* Entity.CurrentAddress
    const lane = yield* decodeEndpointId(entityId).pipe(
      Effect.flatMap(dispatcher.open),
      Effect.orDie
    )
    return EndpointActor.of({ Deliver: () => lane.deliver })
  }),
  { maxIdleTime: "1 minute", mailboxCapacity: 64, concurrency: "unbounded" }
)
