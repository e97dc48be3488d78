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
import { headerNames } from "../passthrough/PassthroughHeaders.ts"
import { vendorOf } from "../passthrough/PassthroughTarget.ts"
import { isCutOff } from "./bodies/BodyReader.ts"
import { headerText } from "./HeaderText.ts"
import type { HeaderValues } from "./HeaderText.ts"
import { hasOneHost } from "./listener/Listener.ts"
import { RequestTrace, traceOf, traceOfSpan } from "./listener/RequestTrace.ts"
import { isExactPath, isStreamedUpload, isTaskShape } from "./Paths.ts"
import { pathOf, renderFailures } from "./problems/Problems.ts"
import { makeVendorModes } from "./VendorModes.ts"

/**
 * Applies to every response: `Traceparent` (also on 404, 413, streams and passthrough), the sandbox header, failures as
 * problems, and the limit of the request body. docs/reference/http.md#every-response
 */
export const layer = HttpRouter.middleware<{ provides: RequestTrace }>()(
  Effect.gen(function* () {
    const { maxBodyBytes, serviceName } = yield* AppConfig
    const names = headerNames(serviceName)
    const isSandbox = yield* makeIsSandbox
    const cap = ByteSize.bytes(maxBodyBytes)
    return (httpEffect) =>
      Effect.withFiber((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const trace =
          traceOfSpan(
            fiber.getRef(Tracer.Tracer),
            Context.getOption(fiber.context, Tracer.ParentSpan)
          ) ?? traceOf(request.headers)
        const path = pathOf(request)
        HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_request, response) =>
          Effect.succeed(
            HttpServerResponse.setHeaders(response, {
              traceparent: trace.traceparent,
              ...(isSandbox(path, request.headers, response.headers[names.model])
                ? { [names.sandbox]: "true" }
                : {}),
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
 * Whether a response gets the sandbox header. If no vendor has a key, every response gets it. Otherwise those at paths
 * of vendors without a key do, except responses that name the model of an alias, which may belong to another vendor.
 * docs/reference/http.md#sandbox-header, ADR 0110.
 */
export const makeIsSandbox = Effect.gen(function* () {
  const vendorModes = yield* makeVendorModes
  return (path: string, headers: HeaderValues, model: string | undefined): boolean => {
    const { live, simulated } = vendorModes()
    if (live.size === 0) return true
    if (model !== undefined || isTaskShape(path)) return false
    return simulated.has(vendorOf(path, headers))
  }
})

/** The parts of a request that are read before it is handled. */
interface RequestHead {
  readonly method: string
  readonly headers: HeaderValues
  /** Node's request, if it came over a connection. */
  readonly source: object
}

const refuseInvalid = <A, E, R>(
  httpEffect: Effect.Effect<A, E, R>,
  request: HttpServerRequest.HttpServerRequest,
  path: string,
  maxBodyBytes: number
): Effect.Effect<A, E | Problem, R> => {
  const fault = faultOfRequest(request, path, maxBodyBytes)
  return fault === undefined ? httpEffect : Effect.fail(fault)
}

/**
 * A fault that is detected before the body is read: not exactly one `Host`, a WebSocket handshake, a path that is not
 * in normal form, or too large a `Content-Length`.
 */
export const faultOfRequest = (
  request: RequestHead,
  path: string,
  maxBodyBytes: number
): Problem | undefined => {
  if (!hasOneHost(request.source)) return noHost
  if (isWebSocketHandshake(request)) return noWebSocket
  if (!isExactPath(path)) return noRoute
  if (isStreamedUpload(path)) return undefined
  return Number(headerText(request.headers, "content-length") ?? 0) > maxBodyBytes
    ? problem(2004, `The body is larger than ${maxBodyBytes} bytes`)
    : undefined
}

/**
 * Detects the handshake of RFC 6455, 4.1, even if a proxy has removed its hop-by-hop headers. Checked before
 * authentication, so that clients fall back to HTTP at once.
 */
const isWebSocketHandshake = ({ headers, method }: RequestHead): boolean =>
  method === "GET" &&
  (headers["sec-websocket-key"] !== undefined ||
    (/\bwebsocket\b/iu.test(headerText(headers, "upgrade") ?? "") &&
      /\bupgrade\b/iu.test(headerText(headers, "connection") ?? "")))

const noWebSocket = problem(
  2020,
  "WebSocket connections are not offered here: send the request over HTTP, and read streams as server-sent events"
)

const noRoute = problem(2006, "There is no such route")
const noHost = problem(2014, "The request must have exactly one Host header")
