import { Clock, Effect, Exit, Layer, Tracer } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { AppConfig } from "../../config/Config.ts"
import { smallBodyBytesMax } from "../../domain/Limits.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import type {
  ForwardHandlers,
  GivenUp,
  OpenPath,
  PassthroughCall,
  Relayed
} from "../../passthrough/Passthrough.ts"
import { SlotArray as Places } from "../../process/SlotArray.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { CurrentBodyTurns } from "../server/BodyTurns.ts"
import type { BodyTurns } from "../server/BodyTurns.ts"
import { clientKeyOf } from "../server/ClientKeys.ts"
import { isPlainJson } from "../server/JsonBody.ts"
import { hasOneHost, Listener } from "../server/Listener.ts"
import { maxCostHeader } from "../server/MaxCost.ts"
import { isTaskPath } from "../server/Paths.ts"
import { traceOf } from "../server/RequestTrace.ts"
import { handOff } from "./HandedOffCall.ts"
import { responseHeaders, headerNames, defaultContentType } from "./PassthroughHeaders.ts"
import type { HeaderNames } from "./PassthroughHeaders.ts"
import { onBody } from "./PassthroughRoutes.ts"
import { aliases, targetOf } from "./PassthroughTarget.ts"

type Rest = Effect.Effect<Relayed, Problem | StoreUnavailable>

/**
 * Handles the ordinary metered call before the routes: a small JSON body and a cached key. A complete
 * 200 is sent at once. Every other request goes to the routes: immediately, or handed off with the rest
 * of the call, so that only the routes send problems and streams. ADR 0113.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { intercept } = yield* Listener
    const calls = new Places<FastPathCall>()
    const interceptor = yield* makeInterceptor(calls)
    // With a tracer each request has a span, which the router makes
    if ((yield* Effect.tracer) !== Tracer.Tracer.defaultValue()) return
    // A closing server waits for the requests of the routes only
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => calls.all().forEach((call) => call.handOffNow()))
    )
    yield* intercept(interceptor)
  })
)

const makeInterceptor = Effect.fnUntraced(function* (calls: Places<FastPathCall>) {
  const keys = yield* ApiKeys
  const passthrough = yield* Passthrough
  const clock = yield* Clock.Clock
  const { toRoutes } = yield* Listener
  const { maxBodyBytes, serviceName } = yield* AppConfig
  const bodyBytesMax = Math.min(smallBodyBytesMax, maxBodyBytes)
  const pathOf = makePathOf(passthrough)
  const turns = yield* CurrentBodyTurns
  const names = headerNames(serviceName)
  const services = { calls, turns, passthrough, clock, toRoutes, names }
  const maxCost = maxCostHeader(serviceName)

  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const to = isOrdinary(request, bodyBytesMax) ? pathOf(request.url ?? "") : undefined
    if (to === undefined || request.headers[maxCost] !== undefined) return false
    const key = clientKeyOf(request)
    const principal = key && keys.cachedPrincipal(key.digest)
    if (principal === undefined || key === undefined) return false
    const call = new FastPathCall(services, { request, response, to, principal, token: key.token })
    response.on("close", () => call.onClose())
    return true
  }
})

/**
 * Node refuses a length with a transfer coding, and has sent `100
 * Continue` before a request comes here.
 */
const isOrdinary = (request: IncomingMessage, bodyBytesMax: number): boolean => {
  const { headers, method } = request
  return (
    method === "POST" &&
    Number(headers["content-length"] ?? Infinity) <= bodyBytesMax &&
    isPlainJson(headers) &&
    hasOneHost(request)
  )
}

/** Paths in the cache of one process. */
const cachedPathsMax = 1000

/**
 * The metered route of a path without escapes or query that the router
 * would give to the passthrough.
 */
const makePathOf = (passthrough: Passthrough["Service"]) => {
  const cache = new Map<string, OpenPath>()
  const find = (url: string): OpenPath | undefined => {
    if (/[?%#]/u.test(url) || isTaskPath(url)) return undefined
    if (!aliases.has(url) && !url.startsWith("/vendors/")) return undefined
    const target = targetOf(url)
    const to = target && passthrough.resolve(target.vendor, "POST", target.path)
    return to !== undefined && Exit.isSuccess(to) && to.value.route.meter.per !== "nothing"
      ? to.value
      : undefined
  }
  let openFor = passthrough.openFor()
  return (url: string): OpenPath | undefined => {
    const now = passthrough.openFor()
    if (now !== openFor) {
      cache.clear()
      openFor = now
    }
    const path = cache.get(url) ?? find(url)
    if (path !== undefined && !cache.has(url)) {
      if (cache.size >= cachedPathsMax) cache.clear()
      cache.set(url, path)
    }
    return path
  }
}

interface Services {
  /** Running calls that are not handed off. */
  readonly calls: Places<FastPathCall>
  readonly turns: BodyTurns
  readonly passthrough: Passthrough["Service"]
  readonly clock: Clock.Clock
  readonly toRoutes: Listener["Service"]["toRoutes"]
  readonly names: HeaderNames
}

interface AcceptedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly to: OpenPath
  readonly principal: Principal
  readonly token: string
}

/** One call, from the headers of its request on. */
class FastPathCall implements ForwardHandlers {
  readonly #services: Services
  readonly #accepted: AcceptedRequest
  readonly #trace
  #place: number | undefined
  #call: PassthroughCall | undefined
  #stop: ((why: GivenUp) => void) | undefined
  /** Set when the call was handed off and the routes wait for the rest of it. */
  #resume: ((rest: Rest) => void) | undefined

  constructor(services: Services, accepted: AcceptedRequest) {
    this.#services = services
    this.#accepted = accepted
    this.#trace = traceOf(accepted.request.headers)
    this.#place = services.calls.add(this)
    const { principal, response } = accepted
    onBody(accepted.request, (body) =>
      services.turns.run(principal.userId, body.length, () => {
        // Its client may have left while it waited
        if (!response.destroyed) this.#forward(body)
      })
    )
  }

  /** The response was closed; before its end, if the client disconnected. */
  onClose(): void {
    this.#remove()
    if (!this.#accepted.response.writableEnded) this.#stop?.("left")
  }

  /** Hands the call off to the routes in whatever state it is. */
  handOffNow(): void {
    this.#handOff(
      Effect.callback((resume) => {
        this.#resume = resume
        return Effect.sync(() => this.#stop?.("failed"))
      })
    )
  }

  #forward(body: Uint8Array): void {
    const { clock, passthrough } = this.#services
    const { principal, request, to } = this.#accepted
    const { headers } = request
    this.#call = { principal, to, query: "", headers, body, traceId: this.#trace.traceId }
    this.#stop = passthrough.forwardUnsafe(this.#call, clock.currentTimeMillisUnsafe(), this)
  }

  onResponse(relayed: Relayed): void {
    if (this.#resume !== undefined || !this.#isSent(relayed)) this.onRest(Exit.succeed(relayed))
  }

  onRest(rest: Rest): void {
    if (this.#resume === undefined) return this.#handOff(rest)
    this.#resume(rest)
  }

  #isSent(relayed: Relayed): boolean {
    const { response } = this.#accepted
    const { body, status } = relayed
    // The client disconnected: a write would only raise an error without a listener
    if (response.destroyed) return true
    if (status !== 200 || !(body instanceof Uint8Array)) return false
    const headers = responseHeaders(relayed, this.#services.names)
    headers["content-type"] ??= defaultContentType
    headers["content-length"] = String(body.length)
    headers["traceparent"] = this.#trace.traceparent
    response.writeHead(status, headers)
    response.end(body)
    return true
  }

  #remove(): void {
    if (this.#place === undefined) return
    this.#services.calls.remove(this.#place)
    this.#place = undefined
  }

  #handOff(rest: Rest): void {
    const { passthrough, toRoutes } = this.#services
    const { request, response, to, token } = this.#accepted
    this.#remove()
    handOff(request, {
      trace: this.#trace,
      rest,
      token,
      route: to.route,
      forward: (principal) =>
        // It has been refused, so that it has begun
        this.#call === undefined ? rest : passthrough.forward({ ...this.#call, principal })
    })
    toRoutes(request, response)
  }
}
