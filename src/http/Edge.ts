import { ByteSize, Context, Effect } from "effect"
import {
  HttpEffect,
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { AppConfig } from "../Config.ts"
import { rescue } from "./Problems.ts"
import { RequestTrace, traceOf } from "./RequestTrace.ts"

/**
 * What holds for every response: `Traceparent` (also on 404, 413, streams and passthrough), failures
 * as problems, a cap on request bodies. Contract 2.
 */
export const layer = HttpRouter.middleware<{ provides: RequestTrace }>()(
  Effect.gen(function* () {
    const { maxBodyBytes } = yield* AppConfig
    const cap = ByteSize.bytes(maxBodyBytes)
    return (httpEffect) =>
      Effect.withFiber((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const trace = traceOf(request.headers)
        HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_request, response) =>
          Effect.succeed(HttpServerResponse.setHeader(response, "traceparent", trace.traceparent))
        )
        return rescue(httpEffect, request).pipe(
          Effect.provideService(RequestTrace, trace),
          Effect.provideService(HttpIncomingMessage.MaxBodySize, cap)
        )
      })
  }),
  { global: true }
)
