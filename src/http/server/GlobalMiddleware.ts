import { ByteSize, Context, Effect, Tracer } from "effect"
import {
  HttpEffect,
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import { handedOffCallOf } from "../passthrough/HandedOffCall.ts"
import { vendorOf } from "../passthrough/PassthroughTarget.ts"
import { hasOneHost } from "./Listener.ts"
import { isExactPath, isTaskShape } from "./Paths.ts"
import { pathOf, renderFailures } from "./Problems.ts"
import { RequestTrace, traceOf, traceOfSpan } from "./RequestTrace.ts"
import { liveVendors } from "./VendorModes.ts"

/**
 * For every response: `Traceparent` (also on 404, 413, streams and passthrough), the sandbox header,
 * failures as problems, a limit of the request body. docs/reference/http.md#every-response
 */
export const layer = HttpRouter.middleware<{ provides: RequestTrace }>()(
  Effect.gen(function* () {
    const { maxBodyBytes, serviceName } = yield* AppConfig
    const isSandbox = yield* makeIsSandbox
    const sandbox = `x-${serviceName}-sandbox`.toLowerCase()
    const cap = ByteSize.bytes(maxBodyBytes)
    return (httpEffect) =>
      Effect.withFiber((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const trace =
          handedOffCallOf(request.source)?.trace ??
          traceOfSpan(
            fiber.getRef(Tracer.Tracer),
            Context.getOption(fiber.context, Tracer.ParentSpan)
          ) ??
          traceOf(request.headers)
        const headers = {
          traceparent: trace.traceparent,
          ...(isSandbox(request.originalUrl) ? { [sandbox]: "true" } : {})
        }
        HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_request, response) =>
          Effect.succeed(HttpServerResponse.setHeaders(response, headers))
        )
        return Effect.updateContext(
          renderFailures(refuseInvalid(httpEffect, request, maxBodyBytes), request),
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

/**
 * Whether the response to a path has the sandbox header: every one while no vendor has a key, else
 * those of vendors without a key. docs/reference/http.md#sandbox-header, ADR 0110.
 */
const makeIsSandbox = Effect.gen(function* () {
  const { live, simulated } = yield* liveVendors
  return (path: string): boolean =>
    live.size === 0 || (simulated.has(vendorOf(path)) && !isTaskShape(path))
})

/**
 * Refuses, before anything is read, a request without one `Host`, a
 * WebSocket handshake, a path in another spelling, and a body with too large a length.
 */
const refuseInvalid = <A, E, R>(
  httpEffect: Effect.Effect<A, E, R>,
  request: HttpServerRequest.HttpServerRequest,
  maxBodyBytes: number
): Effect.Effect<A, E | Problem, R> => {
  if (!hasOneHost(request.source)) return noHost
  if (request.headers["sec-websocket-key"] !== undefined) return noWebSocket
  if (!isExactPath(pathOf(request))) return noRoute
  return Number(request.headers["content-length"] ?? 0) > maxBodyBytes
    ? Effect.fail(problem(2004, `The body is larger than ${maxBodyBytes} bytes`))
    : httpEffect
}

const noWebSocket = Effect.fail(
  problem(
    2006,
    "WebSocket connections are not offered here: send the request over HTTP, and read streams as server-sent events"
  )
)

const noRoute = Effect.fail(problem(2006, "There is no such route"))
const noHost = Effect.fail(problem(2014, "The request must have exactly one Host header"))
