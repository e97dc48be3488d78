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
import { begunOf } from "../passthrough/HandedOffCall.ts"
import { hasOneHost } from "./HostHeader.ts"
import { rescue } from "./Problems.ts"
import { RequestTrace, tracedBy, traceOf } from "./RequestTrace.ts"
import { makeIsSandbox } from "./SandboxHeader.ts"

/**
 * What holds for every response: `Traceparent` (also on 404, 413, streams and passthrough), whether
 * it is the sandbox, failures as problems, a cap on request bodies. Contract 2 and 7.
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
          begunOf(request.source)?.trace ??
          tracedBy(
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
          rescue(atBorder(httpEffect, request, maxBodyBytes), request),
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

/** Refused before anything is read: a request without its one host, a body that is told to be too long. */
const atBorder = <A, E, R>(
  httpEffect: Effect.Effect<A, E, R>,
  request: HttpServerRequest.HttpServerRequest,
  maxBodyBytes: number
): Effect.Effect<A, E | Problem, R> => {
  if (!hasOneHost(request.source)) return noHost
  return Number(request.headers["content-length"] ?? 0) > maxBodyBytes
    ? Effect.fail(problem(2004, `The body is larger than ${maxBodyBytes} bytes`))
    : httpEffect
}

const noHost = Effect.fail(problem(2014, "The request must have exactly one Host header"))
