import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { EndpointId } from "../domain/Ids.ts"

/**
 * The actor of an endpoint ends when it got no message for a minute. While there is work, it gets one
 * after this time at the latest, in milliseconds.
 */
const messageEvery = Duration.toMillis(Duration.seconds(10))

interface LocalSender {
  readonly deliver: Effect.Effect<void>
  messageAtMillis: number
}

/**
 * The endpoint senders that are open in this process. To call one costs next to nothing; a message to
 * its actor costs as much CPU as the delivery itself (ADR 0114).
 */
export class LocalSenders extends Context.Service<
  LocalSenders,
  {
    /** Registers a sender until the scope ends; returns what its actor runs at a message. */
    readonly register: (
      id: EndpointId,
      deliver: Effect.Effect<void>
    ) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
    /**
     * Calls the endpoint's sender: something may be due. `false`: the actor must get a message instead,
     * because no sender is open here or a message is due.
     */
    readonly notify: (id: EndpointId) => Effect.Effect<boolean>
  }
>()("gateway/webhooks/LocalSenders") {
  static readonly layer = Layer.sync(LocalSenders, () => {
    const open = new Map<EndpointId, LocalSender>()
    return LocalSenders.of({
      register: (id, deliver) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const sender: LocalSender = { deliver, messageAtMillis: -Infinity }
            open.set(id, sender)
            return sender
          }),
          (sender) =>
            Effect.sync(() => {
              if (open.get(id) === sender) open.delete(id)
            })
        ).pipe(
          Effect.map((sender) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) => {
              sender.messageAtMillis = now
              return sender.deliver
            })
          )
        ),
      notify: (id) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const sender = open.get(id)
          const isCalled =
            sender !== undefined && Math.abs(now - sender.messageAtMillis) < messageEvery
          return isCalled ? Effect.as(sender.deliver, true) : Effect.succeed(false)
        })
    })
  })
}
