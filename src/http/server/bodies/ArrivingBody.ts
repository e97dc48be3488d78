import { ByteSize, Duration, Effect, Stream } from "effect"
import { HttpIncomingMessage } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { IncomingMessage } from "node:http"
import { bodyStream } from "../../../domain/BodyStream.ts"
import { problem } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { inBodyTurns } from "../../../domain/shares/BodyTurns.ts"
import { sendContinue } from "../listener/Listener.ts"
import { cutOffBody } from "./BodyReader.ts"

const unreadable = problem(2002, "The body could not be read")

const silenceMax = Duration.seconds(30)

/**
 * A long body as a stream while it arrives, in turns of its caller. Within a test process its length is limited to
 * `bytesMax`.
 */
export const arriving = (
  request: HttpServerRequest.HttpServerRequest,
  bytesMax: number,
  caller: string
): Stream.Stream<Uint8Array, Problem> => inBodyTurns(caller, bytesOf(request, bytesMax))

const bytesOf = (
  request: HttpServerRequest.HttpServerRequest,
  bytesMax: number
): Stream.Stream<Uint8Array, Problem> => {
  const { source } = request
  if (!(source instanceof IncomingMessage)) {
    return request.stream.pipe(
      Stream.mapError(() => unreadable),
      Stream.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bytesMax))
    )
  }
  return Stream.suspend(() => {
    sendContinue(source)
    return bodyStream(source, {
      silenceMax,
      onSilence: () => unreadable,
      onBroken: () => unreadable
    })
  })
}

/** Closes the connection if the effect fails before the whole body has been read. */
export const cutOffOnError =
  ({ source }: HttpServerRequest.HttpServerRequest) =>
  <A, E, R>(reading: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onError(reading, () =>
      Effect.sync(() => {
        if (source instanceof IncomingMessage && !source.complete) cutOffBody(source)
      })
    )
