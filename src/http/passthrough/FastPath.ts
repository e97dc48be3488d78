import { Clock, Effect, Exit, Layer, Tracer } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { AppConfig } from "../../config/Config.ts"
import { smallBodyBytesMax } from "../../domain/Limits.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import type { ForwardEnd, OpenPath, Relayed } from "../../passthrough/Passthrough.ts"
import { Places } from "../../process/Places.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { makeKeyOf } from "../server/ClientKeys.ts"
import { hasOneHost } from "../server/HostHeader.ts"
import { isPlainJson } from "../server/JsonBody.ts"
import { Listener } from "../server/Listener.ts"
import { traceOf } from "../server/RequestTrace.ts"
import { handOff } from "./HandedOffCall.ts"
import { headersOf, namesOf, usualType } from "./PassthroughAnswer.ts"
import type { HeaderNames } from "./PassthroughAnswer.ts"
import { forgetDead, onBody } from "./PassthroughRoutes.ts"
import { targetOf } from "./PassthroughTarget.ts"

type Rest = Effect.Effect<Relayed, Problem | StoreUnavailable>

/**
 * Takes the ordinary metered call before the routes see it: a small JSON body, a key that is known.
 * An answer that is whole and good goes straight back. All else is the routes': at once where the
 * request shows it, else with the rest of the call, so that problems and streams are answered in one
 * place only. ADR 0113.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { open } = yield* Listener
    const calls = new Places<FastPathCall>()
    const door = yield* makeDoor(calls)
    // With a tracer each request is a span, which is made for the routes
    if ((yield* Effect.tracer) !== Tracer.Tracer.defaultValue()) return
    // A server that closes waits for what the routes have
    yield* Effect.addFinalizer(() => Effect.sync(() => calls.all().forEach((call) => call.leave())))
    yield* open(door)
  })
)

const makeDoor = Effect.fnUntraced(function* (calls: Places<FastPathCall>) {
  const keys = yield* ApiKeys
  const passthrough = yield* Passthrough
  const clock = yield* Clock.Clock
  const { toRoutes } = yield* Listener
  const { maxBodyBytes, serviceName } = yield* AppConfig
  const bodyBytesMax = Math.min(smallBodyBytesMax, maxBodyBytes)
  const pathOf = makePathOf(passthrough)
  const services = { calls, keys, passthrough, clock, toRoutes, names: namesOf(serviceName) }
  const keyOf = makeKeyOf()

  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const to = isOrdinary(request, bodyBytesMax) ? pathOf(request.url ?? "") : undefined
    if (to === undefined) return false
    const key = keyOf(request)
    const principal = key && keys.cachedPrincipal(key.digest)
    if (principal === undefined || key === undefined) return false
    const call = new FastPathCall(services, { request, response, to, principal, token: key.token })
    response.on("close", () => call.closed())
    return true
  }
})

/** Node brings no request here that has a length and a transfer coding, or that waits for leave to send. */
const isOrdinary = (request: IncomingMessage, bodyBytesMax: number): boolean => {
  const { headers, method } = request
  return (
    method === "POST" &&
    Number(headers["content-length"] ?? Infinity) <= bodyBytesMax &&
    isPlainJson(headers) &&
    hasOneHost(request)
  )
}

/** Other routes have these paths too. */
const isTask = /^\/vendors\/[^/]+\/v1\/[^/]+\/(?:generation|edit)(?:\/|$)/u

/** The paths that one process remembers. */
const pathsMax = 1000

/** The metered route of a plain path that the router would bring to the passthrough. */
const makePathOf = (passthrough: Passthrough["Service"]) => {
  const known = new Map<string, OpenPath>()
  const find = (url: string): OpenPath | undefined => {
    if (/[?%#]/u.test(url) || isTask.test(url)) return undefined
    if (url !== "/v1/chat/completions" && !url.startsWith("/vendors/")) return undefined
    const target = targetOf(url)
    const to = target && passthrough.resolve(target.vendor, "POST", target.path)
    return to !== undefined && Exit.isSuccess(to) && to.value.route.meter.per !== "nothing"
      ? to.value
      : undefined
  }
  return (url: string): OpenPath | undefined => {
    const path = known.get(url) ?? find(url)
    if (path !== undefined && !known.has(url)) {
      if (known.size >= pathsMax) known.clear()
      known.set(url, path)
    }
    return path
  }
}

interface Services {
  /** Under way, and not with the routes. */
  readonly calls: Places<FastPathCall>
  readonly keys: ApiKeys["Service"]
  readonly passthrough: Passthrough["Service"]
  readonly clock: Clock.Clock
  readonly toRoutes: Listener["Service"]["toRoutes"]
  readonly names: HeaderNames
}

interface Ordinary {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly to: OpenPath
  readonly principal: Principal
  readonly token: string
}

/** One call, from the head of its request on. */
class FastPathCall implements ForwardEnd {
  readonly #services: Services
  readonly #ordinary: Ordinary
  readonly #trace
  #place: number | undefined
  #stop: (() => void) | undefined
  /** The routes wait for the rest of it. */
  #resume: ((rest: Rest) => void) | undefined

  constructor(services: Services, ordinary: Ordinary) {
    this.#services = services
    this.#ordinary = ordinary
    this.#trace = traceOf(ordinary.request.headers)
    this.#place = services.calls.add(this)
    onBody(ordinary.request, (body) => this.#forward(body))
  }

  /** The response, which a client that leaves does without an end of it. */
  closed(): void {
    this.#done()
    if (!this.#ordinary.response.writableEnded) this.#stop?.()
  }

  /** To the routes, wherever it stands. */
  leave(): void {
    this.#handOff(
      Effect.callback((resume) => {
        this.#resume = resume
        return Effect.sync(() => this.#stop?.())
      })
    )
  }

  #forward(body: Uint8Array): void {
    const { clock, passthrough } = this.#services
    const { principal, request, to } = this.#ordinary
    const { headers } = request
    this.#stop = passthrough.forwardUnsafe(
      { principal, to, query: "", headers, body, traceId: this.#trace.traceId },
      clock.currentTimeMillisUnsafe(),
      this
    )
  }

  answered(answer: Relayed): void {
    if (this.#resume !== undefined || !this.#isSent(answer)) this.otherwise(Exit.succeed(answer))
  }

  otherwise(rest: Rest): void {
    if (this.#resume === undefined) return this.#handOff(rest)
    this.#resume(rest)
  }

  #isSent(answer: Relayed): boolean {
    const { response } = this.#ordinary
    const { body, status } = answer
    // A client that is gone would be an error of the response that nobody hears
    if (response.destroyed) return true
    if (status !== 200 || !(body instanceof Uint8Array)) return false
    const headers = headersOf(answer, this.#services.names)
    headers["content-type"] ??= usualType
    headers["content-length"] = String(body.length)
    headers["traceparent"] = this.#trace.traceparent
    response.writeHead(status, headers)
    // As text head and body are one piece for Node, and one write to the socket
    response.end(body)
    return true
  }

  #done(): void {
    if (this.#place === undefined) return
    this.#services.calls.remove(this.#place)
    this.#place = undefined
  }

  #handOff(rest: Rest): void {
    const { keys, toRoutes } = this.#services
    const { request, response, token } = this.#ordinary
    this.#done()
    handOff(request, {
      trace: this.#trace,
      rest: Effect.tapError(rest, (error) => Effect.sync(() => forgetDead(keys, token, error)))
    })
    toRoutes(request, response)
  }
}
