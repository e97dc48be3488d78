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
import { headerNames } from "../passthrough/PassthroughHeaders.ts"
import type { HeaderNames } from "../passthrough/PassthroughHeaders.ts"
import { vendorOf } from "../passthrough/PassthroughTarget.ts"
import { isCutOff } from "./BodyReader.ts"
import { hasOneHost } from "./Listener.ts"
import { isExactPath, isTaskShape } from "./Paths.ts"
import { pathOf, renderFailures } from "./Problems.ts"
import { RequestTrace, traceOf, traceOfSpan } from "./RequestTrace.ts"
import { makeVendorModes } from "./VendorModes.ts"

/**
 * For every response: `Traceparent` (also on 404, 413, streams and passthrough), the sandbox header,
 * failures as problems, a limit of the request body. docs/reference/http.md#every-response
 */
export const layer = HttpRouter.middleware<{ provides: RequestTrace }>()(
  Effect.gen(function* () {
    const { maxBodyBytes, serviceName } = yield* AppConfig
    const names = headerNames(serviceName)
    const isSandbox = yield* makeIsSandbox(names)
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
        const path = pathOf(request)
        HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_request, response) =>
          Effect.succeed(
            HttpServerResponse.setHeaders(response, {
              traceparent: trace.traceparent,
              ...(isSandbox(path, response) ? { [names.sandbox]: "true" } : {}),
              ...(isCutOff(request.source) ? { connection: "close" } : {})
            })
          )
        )
        return Effect.updateContext(
          renderFailures(refuseInvalid(httpEffect, request, path, maxBodyBytes)),
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
 * Whether a response gets the sandbox header: every one while no vendor has a key, else those at the paths
 * of vendors without a key, unless it names the model of an alias, which may be another vendor's.
 * docs/reference/http.md#sandbox-header, ADR 0110.
 */
const makeIsSandbox = Effect.fnUntraced(function* (names: HeaderNames) {
  const vendorModes = yield* makeVendorModes
  return (path: string, response: HttpServerResponse.HttpServerResponse): boolean => {
    const { live, simulated } = vendorModes()
    if (live.size === 0) return true
    if (response.headers[names.model] !== undefined || isTaskShape(path)) return false
    return simulated.has(vendorOf(path))
  }
})

/**
 * Refuses, before anything is read, a request without one `Host`, a
 * WebSocket handshake, a path in another spelling, and a body with too large a length.
 */
const refuseInvalid = <A, E, R>(
  httpEffect: Effect.Effect<A, E, R>,
  request: HttpServerRequest.HttpServerRequest,
  path: string,
  maxBodyBytes: number
): Effect.Effect<A, E | Problem, R> => {
  if (!hasOneHost(request.source)) return noHost
  if (isWebSocketHandshake(request)) return noWebSocket
  if (!isExactPath(path)) return noRoute
  return Number(request.headers["content-length"] ?? 0) > maxBodyBytes
    ? Effect.fail(problem(2004, `The body is larger than ${maxBodyBytes} bytes`))
    : httpEffect
}

/**
 * RFC 6455, 4.1; or its rest, where a proxy has removed the headers that belong to the connection. It is judged
 * before its key: clients then fall back to HTTP at once.
 */
const isWebSocketHandshake = ({ headers, method }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" &&
  (headers["sec-websocket-key"] !== undefined ||
    (/\bwebsocket\b/iu.test(headers["upgrade"] ?? "") &&
      /\bupgrade\b/iu.test(headers["connection"] ?? "")))

const noWebSocket = Effect.fail(
  problem(
    2020,
    "WebSocket connections are not offered here: send the request over HTTP, and read streams as server-sent events"
  )
)

const noRoute = Effect.fail(problem(2006, "There is no such route"))
const noHost = Effect.fail(problem(2014, "The request must have exactly one Host header"))
