import { ByteSize, Duration, Effect, Layer } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { receiveCallback } from "../../contract/ServiceApi.ts"
import { callbackBytesMax, callbackSeconds } from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import { Callbacks } from "../../tasks/callbacks/Callbacks.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { resource } from "../server/Resource.ts"

/** Receives vendors' callbacks about their jobs. The signature authenticates them. ADR 0107. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const callbacks = yield* Callbacks
    const bodies = yield* RequestBodyLimiter
    const receive = Effect.gen(function* () {
      const { token = "" } = yield* HttpServerRequest.ParsedSearchParams
      const target = yield* callbacks.readToken(String(token))
      const request = yield* HttpServerRequest.HttpServerRequest
      const { headers } = request
      const accept = (bytes: Uint8Array) => callbacks.accept(target, { headers, body: bytes })
      // The body of an unsigned callback is not read
      yield* target.account.callbacks?.keys._tag === "None"
        ? accept(new Uint8Array())
        : bodies.within(request, "vendors")(Effect.flatMap(body, accept))
      return HttpServerResponse.empty({ status: 204 })
    })
    return callbacks.isOn
      ? HttpRouter.addAll(resource(receiveCallback.path, { POST: receive }))
      : Layer.empty
  })
)

/**
 * A body that is too large is refused unread if it declares its length, otherwise at the first byte above the limit.
 */
const body = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (Number(request.headers["content-length"] ?? 0) > callbackBytesMax) {
    return yield* problem(2004, `The body is larger than ${callbackBytesMax} bytes`)
  }
  return new Uint8Array(yield* request.arrayBuffer)
}).pipe(
  Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(callbackBytesMax)),
  Effect.timeoutOrElse({
    duration: Duration.seconds(callbackSeconds),
    orElse: () => Effect.fail(problem(2015, "The body did not arrive in time"))
  })
)
