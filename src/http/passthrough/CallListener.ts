import { Cause, Effect, Layer, Tracer } from "effect"
import { Cookies, HttpServerError } from "effect/http"
import type { IncomingMessage, ServerResponse } from "node:http"
import { pipeline } from "node:stream"
import type { Readable } from "node:stream"
import { AppConfig } from "../../config/Config.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import { makeFiberSlots } from "../../process/SlotArray.ts"
import { isCutOff, readSource } from "../server/BodyReader.ts"
import type { BodyWatch } from "../server/BodyReader.ts"
import { faultOfRequest, makeIsSandbox } from "../server/GlobalMiddleware.ts"
import { isExpecting, Listener, pathOfUrl, stopping } from "../server/Listener.ts"
import { faultOf, renderProblem } from "../server/Problems.ts"
import { traceOf } from "../server/RequestTrace.ts"
import type { RequestTrace } from "../server/RequestTrace.ts"
import { makeClientCallOf } from "./ClientCall.ts"
import type { ClientCall, ClientCallOf, ClientRequest } from "./ClientCall.ts"
import { defaultContentType, headerNames, responseHeaders } from "./PassthroughHeaders.ts"
import type { HeaderNames } from "./PassthroughHeaders.ts"
import { isPassthroughPath } from "./PassthroughTarget.ts"

/**
 * Takes each request to a path of the passthrough before the routes, runs it as one fiber, and writes its
 * response: whole, as a stream, or a problem. ADR 0113
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    // With a tracer the router takes them, which makes a span of each request
    if ((yield* Effect.tracer) !== Tracer.Tracer.defaultValue()) return
    const { intercept } = yield* Listener
    const { maxBodyBytes, serviceName } = yield* AppConfig
    const services: Services = {
      callOf: yield* makeClientCallOf,
      passthrough: yield* Passthrough,
      isSandbox: yield* makeIsSandbox,
      names: headerNames(serviceName),
      maxBodyBytes
    }
    const fork = yield* makeFiberSlots()
    yield* intercept((request, response) => {
      const path = pathOfUrl(request)
      if (!isPassthroughPath(path)) return false
      const fiber = fork(serve(services, request, response, path))
      if (fiber === undefined) return false
      response.on("close", () => {
        if (!response.writableEnded) fiber.interruptUnsafe(fiber.id, clientLeft)
      })
      return true
    })
  })
)

const clientLeft = HttpServerError.ClientAbort.annotation

interface Services {
  readonly callOf: ClientCallOf
  readonly passthrough: Passthrough["Service"]
  readonly isSandbox: (path: string, model: string | undefined) => boolean
  readonly names: HeaderNames
  readonly maxBodyBytes: number
}

/** One request, from its headers to the end of its response. */
const serve = (
  services: Services,
  request: IncomingMessage,
  response: ServerResponse,
  path: string
): Effect.Effect<void> => {
  const { callOf, maxBodyBytes, names, passthrough } = services
  const client = new NodeRequest(request, maxBodyBytes)
  const trace = traceOf(request.headers)
  const call = callOf(client, trace.traceId)
  const fault = faultOfRequest(client, path, maxBodyBytes)
  const relayed =
    fault !== undefined ? Effect.fail(fault) : call === undefined ? noRoute : passthrough.call(call)
  const sent = Effect.flatMap(Effect.interruptible(relayed), (relayed) => {
    const headers = responseHeaders(relayed, names)
    headers["traceparent"] = trace.traceparent
    Object.assign(headers, call?.rateHeaders)
    return relayed.body instanceof Uint8Array
      ? sendWhole(response, relayed.status, headers, relayed.body)
      : sendStream(response, relayed.status, headers, relayed.body)
  })
  return Effect.uninterruptible(
    Effect.catchCause(sent, (cause) => sendFault(services, { call, path, response, trace }, cause))
  )
}

export const noRoute = Effect.fail(problem(2006, "There is no such route"))

/** Node's request. */
class NodeRequest implements ClientRequest {
  readonly source: IncomingMessage
  readonly #maxBodyBytes: number

  constructor(source: IncomingMessage, maxBodyBytes: number) {
    this.source = source
    this.#maxBodyBytes = maxBodyBytes
  }

  get method(): string {
    return this.source.method ?? ""
  }

  get url(): string {
    return this.source.url ?? ""
  }

  get headers() {
    return this.source.headers
  }

  get cookies() {
    return Cookies.parseHeader(this.source.headers.cookie ?? "")
  }

  read(watch: BodyWatch) {
    return readSource(this.source, watch, this.#maxBodyBytes)
  }
}

type Headers = Record<string, string>

/** A client that has gone receives nothing; neither does one whose request was answered at the end of the process. */
const isOver = ({ destroyed, writableEnded }: ServerResponse): boolean => destroyed || writableEnded

const sendWhole = (
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: Uint8Array | string
): Effect.Effect<void> => {
  if (isOver(response)) return Effect.void
  const hasBody = status !== 204 && status !== 205
  if (hasBody) {
    headers["content-type"] ??= defaultContentType
    headers["content-length"] = String(Buffer.byteLength(body))
  }
  const isGentle = closesEarly(response, headers)
  response.writeHead(status, headers)
  if (isGentle) endGently(response, body)
  else response.end(hasBody ? body : undefined)
  return Effect.void
}

/** Back pressure of the client pauses the upstream. Who interrupts it closes the upstream. */
const sendStream = (
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: Readable
): Effect.Effect<void> => {
  if (isOver(response)) return Effect.sync(() => body.destroy())
  response.writeHead(status, headers)
  return Effect.interruptible(
    Effect.callback((resume) => {
      pipeline(body, response, () => resume(Effect.void))
      return Effect.sync(() => body.destroy())
    })
  )
}

interface Served {
  readonly call: ClientCall | undefined
  readonly path: string
  readonly response: ServerResponse
  readonly trace: RequestTrace["Service"]
}

/** A problem, unless the client has left or part of the response was sent. */
const sendFault = (
  { isSandbox, names }: Services,
  { call, path, response, trace }: Served,
  cause: Cause.Cause<Problem | StoreUnavailable>
): Effect.Effect<void> => {
  if (response.headersSent) return Effect.sync(() => response.destroy())
  if (isOver(response)) return Effect.void
  const fault = Cause.hasInterruptsOnly(cause)
    ? Effect.succeed(stopping)
    : faultOf(cause, response.req.method ?? "", path)
  return Effect.flatMap(fault, (fault) => {
    const { body, headers, status } = renderProblem(fault, path, trace)
    return sendWhole(
      response,
      status,
      {
        ...headers,
        ...call?.rateHeaders,
        ...(isSandbox(path, undefined) ? { [names.sandbox]: "true" } : {})
      },
      body
    )
  })
}

/** An unread body that is larger closes the connection: Node would read it to its end. */
const unreadBytesMax = 256 * 1024

/** Closes the connection where the rest of the request is not worth reading. Returns whether it is being sent. */
const closesEarly = ({ req }: ServerResponse, headers: Headers): boolean => {
  if (req.complete) return false
  const { "content-length": length, "transfer-encoding": coding } = req.headers
  const isUnread = isCutOff(req) || coding !== undefined || Number(length ?? 0) > unreadBytesMax
  const isWaiting = isExpecting(req)
  if (isUnread || isWaiting) headers["connection"] = "close"
  return isUnread && !isWaiting
}

/** How long a client that still sends has for the response, before the end of the connection resets it. */
const endMillis = 500

const endGently = (response: ServerResponse, body: Uint8Array | string): void => {
  const { req } = response
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, endMillis)
  req.once("close", end)
  req.once("end", end)
  req.resume()
  response.write(body)
}
