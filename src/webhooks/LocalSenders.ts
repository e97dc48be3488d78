import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { EndpointId } from "../domain/Ids.ts"

/**
 * The actor of a lane ends when it has got no message for a minute, so that one goes to it after this
 * time at the latest, while there is something to say.
 */
const messageEvery = Duration.toMillis(Duration.seconds(10))

interface LocalSender {
  readonly deliver: Effect.Effect<void>
  messageAtMillis: number
}

/**
 * The endpoints whose lane is open in this process. Telling a lane by a call costs next to nothing, a
 * message to its actor as much CPU as the delivery itself (ADR 0114).
 */
export class LocalSenders extends Context.Service<
  LocalSenders,
  {
    /** Keeps a lane until the scope ends; answers what its actor does at a message. */
    readonly add: (
      id: EndpointId,
      deliver: Effect.Effect<void>
    ) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
    /** Something may be due. False: a message has to say so, because no lane is open or it is time for one. */
    readonly tell: (id: EndpointId) => Effect.Effect<boolean>
  }
>()("gateway/webhooks/LocalSenders") {
  static readonly layer = Layer.sync(LocalSenders, () => {
    const open = new Map<EndpointId, LocalSender>()
    return LocalSenders.of({
      add: (id, deliver) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const lane: LocalSender = { deliver, messageAtMillis: -Infinity }
            open.set(id, lane)
            return lane
          }),
          (lane) =>
            Effect.sync(() => {
              if (open.get(id) === lane) open.delete(id)
            })
        ).pipe(
          Effect.map((lane) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) => {
              lane.messageAtMillis = now
              return lane.deliver
            })
          )
        ),
      tell: (id) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const lane = open.get(id)
          const isTold = lane !== undefined && Math.abs(now - lane.messageAtMillis) < messageEvery
          return isTold ? Effect.as(lane.deliver, true) : Effect.succeed(false)
        })
    })
  })
}
