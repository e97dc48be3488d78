import { Cause, Effect, Exit, Layer, Option, Tracer } from "effect"
import { Cookies, HttpServerError } from "effect/http"
import { IncomingMessage } from "node:http"
import type { ServerResponse } from "node:http"
import { Readable } from "node:stream"
import type { OpenRoute } from "../../catalog/OpenRoutes.ts"
import { dialectOfProvider } from "../../catalog/UpstreamCatalog.ts"
import { AppConfig } from "../../config/Config.ts"
import type { Credits } from "../../domain/Credits.ts"
import { boundaryOf } from "../../domain/forms/FormHead.ts"
import { keepDocument, withoutMark } from "../../domain/json/JsonDocument.ts"
import { smallBodyBytesMax } from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { CurrentBodyTurns } from "../../domain/shares/BodyTurns.ts"
import type { BodyTurns } from "../../domain/shares/BodyTurns.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import type {
  CallBody,
  CallRequest,
  CallTarget,
  OpenPath,
  ResponseCalls
} from "../../passthrough/PassthroughCall.ts"
import { makeFiberSlots } from "../../process/SlotArray.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Admitted, Principal, Rate } from "../../users/ApiKeys.ts"
import { makeResponseCalls } from "../openai/BackgroundCalls.ts"
import { overRate, rateHeaders } from "../server/access/Authentication.ts"
import { clientKeyOf, clientTokenOf, readKey, tokenMissing } from "../server/access/ClientKeys.ts"
import type { CookieRequest } from "../server/access/SessionCookies.ts"
import { makeSessionUseOf } from "../server/access/SessionKeys.ts"
import type { SessionUse, SessionUseOf } from "../server/access/SessionKeys.ts"
import { discardBody, isCutOff, readSource } from "../server/bodies/BodyReader.ts"
import type { BodyWatch } from "../server/bodies/BodyReader.ts"
import { isPlainJson, notJson, readDocumentOf, readScanned } from "../server/bodies/JsonBody.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { faultOfRequest, makeIsSandbox } from "../server/GlobalMiddleware.ts"
import { headerText } from "../server/HeaderText.ts"
import type { HeaderValues } from "../server/HeaderText.ts"
import { isExpecting, Listener, pathOfUrl, stopping } from "../server/listener/Listener.ts"
import { traceOf } from "../server/listener/RequestTrace.ts"
import type { RequestTrace } from "../server/listener/RequestTrace.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { faultOf, renderProblem } from "../server/problems/Problems.ts"
import { FormUpload } from "./FormUpload.ts"
import { defaultContentType, headerNames, responseHeaders } from "./PassthroughHeaders.ts"
import type { HeaderNames } from "./PassthroughHeaders.ts"
import { isPassthroughPath, placeOf, targetOf } from "./PassthroughTarget.ts"
import type { Target } from "./PassthroughTarget.ts"

/**
 * Handles requests to passthrough paths before the routes do. Runs each request as one fiber and writes its response: a
 * complete body, a stream or a problem. ADR 0113
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    // With a tracer, the router handles them instead, because it creates a span for each request
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
  readonly isSandbox: (path: string, headers: HeaderValues, model: string | undefined) => boolean
  readonly names: HeaderNames
  readonly maxBodyBytes: number
}

/** Handles one request, from its headers to the end of its response. */
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

/** A request over a connection of Node's server. */
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

/**
 * Whether nothing more can be sent, because the client has disconnected or the response was already ended while the
 * process stopped.
 */
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

/** Streams a response. A slow client pauses the upstream through back-pressure. An interruption closes the upstream. */
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
      // Node's `pipeline` creates an exception for every stream, even for one that ends well. `passthrough`
      body.pipe(response)
      body.once("close", () => body.readableEnded || response.destroy())
      response.on("error", () => {})
      response.once("close", () => {
        body.destroy()
        resume(Effect.void)
      })
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

/** Sends a problem, unless the client has disconnected or part of the response has been sent. */
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
    const place = placeOf(path, response.req.headers)
    const { body, headers, status } = renderProblem(fault, place, trace)
    return sendWhole(
      response,
      status,
      {
        ...headers,
        ...call?.rateHeaders,
        ...(isSandbox(path, response.req.headers, undefined) ? { [names.sandbox]: "true" } : {})
      },
      body
    )
  })
}

/**
 * If more than this is left unread of a request body, the connection is closed, because Node would otherwise read it
 * all.
 */
const unreadBytesMax = 256 * 1024

/**
 * Closes the connection if the rest of the request is too long to read. Returns whether the client is still sending it.
 */
const closesEarly = ({ req }: ServerResponse, headers: Headers): boolean => {
  if (req.complete) return false
  const { "content-length": length, "transfer-encoding": coding } = req.headers
  const isUnread = isCutOff(req) || coding !== undefined || Number(length ?? 0) > unreadBytesMax
  const isWaiting = isExpecting(req)
  if (isUnread || isWaiting) headers["connection"] = "close"
  return isUnread && !isWaiting
}

/** How long a client that is still sending may take to read the response before its connection is reset. */
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
  if (!isCutOff(req)) discardBody(req)
  response.write(body)
}

/** A passthrough request, over a connection or within a test process. */
export interface ClientRequest extends CookieRequest {
  /** Path and query exactly as the client sent them. */
  readonly url: string
  /** Node's request, if the request came over a connection. */
  readonly source: object
  /** Reads the body. Fails with 2002 or 2004. */
  read(watch: BodyWatch): Effect.Effect<Uint8Array, Problem>
}

/** The call of a request. `undefined`: the path names no vendor. */
export type ClientCallOf = (request: ClientRequest, traceId: string) => ClientCall | undefined

export const makeClientCallOf = Effect.gen(function* () {
  const { maxBodyBytes, serviceName } = yield* AppConfig
  const services: ClientServices = {
    maxBodyBytes,
    keys: yield* ApiKeys,
    bodies: yield* RequestBodyLimiter,
    turns: yield* CurrentBodyTurns,
    sessionUseOf: yield* makeSessionUseOf,
    maxCostName: maxCostHeader(serviceName),
    responses: yield* makeResponseCalls
  }
  return (request: ClientRequest, traceId: string): ClientCall | undefined => {
    const target = targetOf(request.url, request.headers)
    return target && new ClientCall(services, request, target, traceId)
  }
})

interface ClientServices {
  readonly maxBodyBytes: number
  readonly keys: ApiKeys["Service"]
  readonly bodies: RequestBodyLimiter["Service"]
  readonly turns: BodyTurns
  readonly sessionUseOf: SessionUseOf
  readonly maxCostName: string
  readonly responses: ResponseCalls
}

/** The parts of a client's request that a call needs: the key and the body. */
export class ClientCall implements CallRequest {
  readonly #services: ClientServices
  readonly #request: ClientRequest
  readonly #queryKey: string | undefined
  readonly target: CallTarget
  readonly headers: HeaderValues
  readonly traceId: string
  /** The token that identified the caller; absent for a session. */
  #token: string | undefined
  #rate: Rate | undefined
  #session: SessionUse | undefined

  constructor(services: ClientServices, request: ClientRequest, target: Target, traceId: string) {
    const { maxCostName } = services
    this.#services = services
    this.#request = request
    this.#queryKey = target.key
    this.target = target
    this.headers =
      request.headers[maxCostName] === undefined
        ? request.headers
        : { ...request.headers, [maxCostName]: undefined }
    this.traceId = traceId
  }

  get method(): string {
    return this.#request.method
  }

  get mayStill(): CallRequest["mayStill"] {
    if (this.#token !== undefined) return this.#services.keys.authenticate(this.#token)
    return this.#session?.mayStill ?? tokenMissing
  }

  get responses(): ResponseCalls {
    return this.#services.responses
  }

  get maxCost(): Exit.Exit<Credits | undefined, Problem> {
    return readMaxCost(this.#request.headers, this.#services.maxCostName)
  }

  /** Headers for every response to a key with a rate limit, including problems. */
  get rateHeaders(): Readonly<Record<string, string>> | undefined {
    return this.#rate && rateHeaders(this.#rate)
  }

  /**
   * Authenticates the caller. A metered call may use a cached key, because its hold checks the key again. Precedence:
   * header, then query (Gemini's clients may put the key there), then cookie.
   */
  authenticate({
    catalog,
    route: { meter, provider }
  }: Pick<OpenPath, "catalog" | "route">): Effect.Effect<Principal, Problem | StoreUnavailable> {
    const { keys } = this.#services
    const { headers, source } = this.#request
    const isMetered = meter.per !== "nothing"
    const key = source instanceof IncomingMessage ? clientKeyOf(source) : readKey(headers)
    const cached = isMetered && key !== undefined ? keys.cachedPrincipal(key.digest) : undefined
    this.#token =
      key?.token ?? (dialectOfProvider(catalog, provider) === "gemini" ? this.#queryKey : undefined)
    if (cached !== undefined) return Effect.succeed(cached)
    return Effect.flatMap(this.#admit(this.#token, isMetered), ({ principal, rate }) => {
      this.#rate = Option.getOrUndefined(rate)
      return this.#rate?.admitted === false
        ? Effect.fail(overRate(this.#rate))
        : Effect.succeed(principal)
    })
  }

  #admit(
    token: string | undefined,
    isMetered: boolean
  ): Effect.Effect<Admitted, Problem | StoreUnavailable> {
    const { keys, sessionUseOf } = this.#services
    const given = clientTokenOf(this.#request.headers)
    if (Exit.isFailure(given) && given !== tokenMissing) return Effect.failCause(given.cause)
    if (token !== undefined) {
      return isMetered ? keys.admitCached(token) : keys.admit(token, Option.none())
    }
    return Effect.flatMap(sessionUseOf(this.#request), (use) => {
      if (Option.isNone(use)) return tokenMissing
      this.#session = use.value
      return keys.admitHash(use.value.keyHash, Option.none())
    })
  }

  forgetKey(): void {
    if (this.#token !== undefined) this.#services.keys.evict(this.#token)
  }

  withBody<A>(
    route: OpenRoute,
    { userId }: Principal,
    use: (body: CallBody) => Effect.Effect<A, Problem | StoreUnavailable>
  ): Effect.Effect<A, Problem | StoreUnavailable> {
    const { bodies, turns } = this.#services
    // The session may have ended while the body arrived. The hold itself checks a key
    const isSignedIn = this.#session?.mayStill ?? Effect.void
    const used = takesForm(route)
      ? Effect.flatMap(this.#upload(), (upload) =>
          Effect.ensuring(
            Effect.andThen(isSignedIn, use({ bytes: noBytes, upload })),
            Effect.sync(() => upload.discard())
          )
        )
      : Effect.flatMap(this.#body(route), (bytes) =>
          turns
            .take(userId, bytes.length)
            .pipe(Effect.andThen(isSignedIn), Effect.andThen(use({ bytes })))
        )
    return bodies.within(this.#request, userId)(used)
  }

  /** A form with a file, read as far as the plan needs it. */
  #upload(): Effect.Effect<FormUpload, Problem> {
    const { headers, source } = this.#request
    const type = headerText(headers, "content-type") ?? ""
    const boundary = /^multipart\/form-data\b/iu.test(type) ? boundaryOf(type) : undefined
    if (boundary === undefined) return Effect.fail(notForm)
    const length = headerText(headers, "content-length")
    const announced = length === undefined ? undefined : Number(length)
    const { maxBodyBytes } = this.#services
    const bytes =
      source instanceof IncomingMessage
        ? Effect.succeed(source)
        : Effect.map(this.#request.read(watchNothing), (bytes) =>
            Readable.from([Buffer.from(bytes)])
          )
    return Effect.flatMap(bytes, (readable) => {
      const upload = new FormUpload(readable, boundary, announced, maxBodyBytes)
      const discarded = Effect.sync(() => upload.discard())
      return Effect.as(
        Effect.onExit(upload.head, (exit) => (Exit.isFailure(exit) ? discarded : Effect.void)),
        upload
      )
    })
  }

  /** The whole body. Its contents determine the price, and on shared paths the vendor. */
  #body({ meter }: OpenRoute): Effect.Effect<Uint8Array, Problem> {
    const request = this.#request
    if (request.method !== "POST") return noBody
    const isSmall = hasSmallBody(request.headers)
    // A free call needs its model only on a shared path
    if (meter.per !== "tokens" && (isSmall || !this.target.isShared)) {
      return Effect.map(readScanned(request), ({ bytes }) => bytes)
    }
    if (isSmall) {
      // Must be JSON, because the plan parses it right away
      return isPlainJson(request.headers) ? request.read(watchNothing) : Effect.fail(notJson)
    }
    return Effect.map(readDocumentOf(request), ({ bytes, document }) => {
      const body = withoutMark(bytes)
      keepDocument(body, document)
      return body
    })
  }
}

const noBytes = new Uint8Array()
const noBody = Effect.succeed(noBytes)

const takesForm = ({ meter }: OpenRoute): boolean =>
  meter.per === "tokens" && meter.protocol === "openai-transcription"

const notForm = problem(2003, "Expected Content-Type: multipart/form-data with a boundary")

const watchNothing: BodyWatch = { add: () => undefined }

const hasSmallBody = (headers: HeaderValues): boolean =>
  Number(headerText(headers, "content-length") ?? Infinity) <= smallBodyBytesMax
