import { ByteSize, Context, Effect } from "effect"
import {
  HttpEffect,
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { AppConfig } from "../Config.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
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
        return Effect.updateContext(
          rescue(withinCap(httpEffect, request, maxBodyBytes), request),
          (context: Context.Context<never>) =>
            Context.add(
              Context.add(context, HttpIncomingMessage.MaxBodySize, cap),
              RequestTrace,
              trace
            )
        )
      })
  }),
  { global: true }
)

/** A body whose length is told is refused before any of it is read. Contract 2, 2004. */
const withinCap = <A, E, R>(
  httpEffect: Effect.Effect<A, E, R>,
  request: HttpServerRequest.HttpServerRequest,
  maxBodyBytes: number
): Effect.Effect<A, E | Problem, R> =>
  Number(request.headers["content-length"] ?? 0) > maxBodyBytes
    ? Effect.fail(problem(2004, `The body is larger than ${maxBodyBytes} bytes`))
    : httpEffect
