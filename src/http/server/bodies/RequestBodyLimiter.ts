import { Context, Duration, Effect, Layer } from "effect"
import { IncomingMessage } from "node:http"
import { AppConfig } from "../../../config/Config.ts"
import {
  largestBodiesMax,
  largestBodiesPerCallerMax,
  slowSenderBytesMin,
  slowSenderSeconds,
  smallBodyBytesMax
} from "../../../domain/limits/Limits.ts"
import { ofProcess } from "../../../domain/limits/ShareLimits.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"
import { ArrivingBody, BodyCapacity, UserCapacity } from "./BodyCapacity.ts"

/**
 * Limits the memory of request bodies in this process. It counts the bytes of large bodies that have arrived, and
 * pauses bodies above the limit. Each caller has a share, so its bodies delay only its own. A sender that is too slow
 * is cut off. This is not `FairShares`, because a body takes more as it arrives and is paused in between. ADR 0140.
 */
export class RequestBodyLimiter extends Context.Service<
  RequestBodyLimiter,
  {
    /** Runs an effect that reads and uses the body of a caller's request. */
    readonly within: (
      request: { readonly headers: HeaderValues; readonly source: object },
      caller: string
    ) => <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("gateway/http/server/RequestBodyLimiter") {
  static readonly layer = Layer.effect(
    RequestBodyLimiter,
    Effect.gen(function* () {
      const { maxBodyBytes, processes } = yield* AppConfig
      // The largest body is subtracted, because one body may continue above the limit
      const all = new BodyCapacity(ofProcess((largestBodiesMax - 1) * maxBodyBytes, processes))
      const enter = makeEnter(all, largestBodiesPerCallerMax * maxBodyBytes)
      return {
        within: ({ headers, source }, caller) => {
          const bytes = bytesOf(headers, maxBodyBytes)
          return bytes === 0 || !(source instanceof IncomingMessage)
            ? (use) => use
            : (use) =>
                Effect.uninterruptibleMask((restore) =>
                  Effect.flatMap(restore(enter(source, caller, bytes)), ({ body, leave }) =>
                    restore(
                      Effect.scoped(Effect.andThen(Effect.forkScoped(expireSlow(body)), use))
                    ).pipe(Effect.ensuring(Effect.sync(leave)))
                  )
                )
        }
      }
    })
  )
}

interface Entered {
  readonly body: ArrivingBody
  readonly leave: () => void
}

/** Gives each caller with large bodies its own capacity. */
const makeEnter = (all: BodyCapacity, bytesMax: number) => {
  const users = new Map<string, UserCapacity>()
  return (source: IncomingMessage, caller: string, bytes: number) =>
    Effect.callback<Entered>((resume) => {
      const user = users.get(caller) ?? new UserCapacity(bytesMax)
      users.set(caller, user)
      let body: ArrivingBody | undefined
      let giveUp = () => {}
      const leave = () => {
        giveUp()
        body?.leave()
        if (user.isEmpty) users.delete(caller)
      }
      giveUp = user.take(bytes, () => {
        body = new ArrivingBody(source, { user, all }, bytes)
        resume(Effect.succeed({ body, leave }))
      })
      return Effect.sync(leave)
    })
}

/** Ends the request of a sender that is too slow with a 408 and closes the connection. */
const expireSlow = Effect.fnUntraced(function* (body: ArrivingBody) {
  while (!body.isComplete) {
    yield* Effect.sleep(Duration.seconds(slowSenderSeconds))
    const bytes = body.receivedSinceLast()
    const isLarge = !body.isComplete && body.granted > smallBodyBytesMax
    if (isLarge && bytes !== undefined && bytes < slowSenderBytesMin * slowSenderSeconds) {
      return body.expire()
    }
  }
})

/**
 * How many bytes a body takes before it is read; 0 for a small body. A body without a length takes more as it arrives.
 */
const bytesOf = (headers: HeaderValues, max: number): number => {
  if (headers["transfer-encoding"] !== undefined) return Math.min(smallBodyBytesMax, max)
  const length = Math.min(Number(headerText(headers, "content-length") ?? 0), max)
  return length <= smallBodyBytesMax ? 0 : length
}
