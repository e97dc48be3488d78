import { Effect, Exit, Option } from "effect"
import { IncomingMessage } from "node:http"
import type { OpenRoute } from "../../catalog/OpenRoutes.ts"
import { AppConfig } from "../../config/Config.ts"
import type { Credits } from "../../domain/Credits.ts"
import { keepDocument, withoutMark } from "../../domain/JsonDocument.ts"
import { smallBodyBytesMax } from "../../domain/Limits.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { CallRequest, CallTarget } from "../../passthrough/PassthroughCall.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Admitted, Principal, Rate } from "../../users/ApiKeys.ts"
import { overRate, rateHeaders } from "../server/Authentication.ts"
import type { BodyWatch } from "../server/BodyReader.ts"
import { CurrentBodyTurns } from "../server/BodyTurns.ts"
import type { BodyTurns } from "../server/BodyTurns.ts"
import { clientKeyOf, clientTokenOf, readKey, tokenMissing } from "../server/ClientKeys.ts"
import { headerText } from "../server/HeaderText.ts"
import type { HeaderValues } from "../server/HeaderText.ts"
import { isPlainJson, notJson, readDocumentOf, readScanned } from "../server/JsonBody.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { RequestBodyLimiter } from "../server/RequestBodyLimiter.ts"
import type { CookieRequest } from "../server/SessionCookies.ts"
import { makeSessionUseOf } from "../server/SessionKeys.ts"
import type { SessionUseOf } from "../server/SessionKeys.ts"
import { targetOf } from "./PassthroughTarget.ts"
import type { Target } from "./PassthroughTarget.ts"

/** A request to the passthrough, by a connection or in a test's own process. */
export interface ClientRequest extends CookieRequest {
  /** Path and query, as the client sent them. */
  readonly url: string
  /** Node's request, if it came by a connection. */
  readonly source: object
  /** Reads the body. Fails with 2002 or 2004. */
  read(watch: BodyWatch): Effect.Effect<Uint8Array, Problem>
}

/** The call of a request; `undefined` for a path that names no vendor. */
export type ClientCallOf = (request: ClientRequest, traceId: string) => ClientCall | undefined

export const makeClientCallOf = Effect.gen(function* () {
  const { serviceName } = yield* AppConfig
  const services: Services = {
    keys: yield* ApiKeys,
    bodies: yield* RequestBodyLimiter,
    turns: yield* CurrentBodyTurns,
    sessionUseOf: yield* makeSessionUseOf,
    maxCostName: maxCostHeader(serviceName)
  }
  return (request: ClientRequest, traceId: string): ClientCall | undefined => {
    const target = targetOf(request.url)
    return target && new ClientCall(services, request, target, traceId)
  }
})

interface Services {
  readonly keys: ApiKeys["Service"]
  readonly bodies: RequestBodyLimiter["Service"]
  readonly turns: BodyTurns
  readonly sessionUseOf: SessionUseOf
  readonly maxCostName: string
}

/** What a call asks of its client's request: the key and the body. */
export class ClientCall implements CallRequest {
  readonly #services: Services
  readonly #request: ClientRequest
  readonly #queryKey: string | undefined
  readonly target: CallTarget
  readonly headers: HeaderValues
  readonly traceId: string
  /** By which the caller was found, unless it has a session. */
  #token: string | undefined
  #rate: Rate | undefined

  constructor(services: Services, request: ClientRequest, target: Target, traceId: string) {
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

  get maxCost(): Exit.Exit<Credits | undefined, Problem> {
    return readMaxCost(this.#request.headers, this.#services.maxCostName)
  }

  /** For every response to a key with a rate limit, also for a problem. */
  get rateHeaders(): Readonly<Record<string, string>> | undefined {
    return this.#rate && rateHeaders(this.#rate)
  }

  /**
   * A metered call takes a key from the cache where it can: its hold checks the key again. Gemini's clients may put
   * the key in the query; a header goes before it, and it before a cookie.
   */
  authenticate({
    meter,
    provider
  }: OpenRoute): Effect.Effect<Principal, Problem | StoreUnavailable> {
    const { keys } = this.#services
    const { headers, source } = this.#request
    const isMetered = meter.per !== "nothing"
    const key = source instanceof IncomingMessage ? clientKeyOf(source) : readKey(headers)
    const cached = isMetered && key !== undefined ? keys.cachedPrincipal(key.digest) : undefined
    this.#token = key?.token ?? (provider === "gemini" ? this.#queryKey : undefined)
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
    return Effect.flatMap(sessionUseOf(this.#request), (use) =>
      Option.isNone(use) ? tokenMissing : keys.admitHash(use.value.keyHash, Option.none())
    )
  }

  forgetKey(): void {
    if (this.#token !== undefined) this.#services.keys.evict(this.#token)
  }

  withBody<A>(
    route: OpenRoute,
    { userId }: Principal,
    use: (body: Uint8Array) => Effect.Effect<A, Problem | StoreUnavailable>
  ): Effect.Effect<A, Problem | StoreUnavailable> {
    const { bodies, turns } = this.#services
    const used = Effect.flatMap(this.#body(route), (body) =>
      Effect.andThen(turns.take(userId, body.length), use(body))
    )
    return bodies.within(this.#request, userId)(used)
  }

  /** The whole body. Where its tokens are paid, the price depends on what is in it. */
  #body({ meter }: OpenRoute): Effect.Effect<Uint8Array, Problem> {
    const request = this.#request
    if (request.method !== "POST") return noBody
    if (meter.per !== "tokens") return Effect.map(readScanned(request), ({ bytes }) => bytes)
    if (isSmall(request.headers)) {
      // The plan parses it at once
      return isPlainJson(request.headers) ? request.read(watchNothing) : Effect.fail(notJson)
    }
    return Effect.map(readDocumentOf(request), ({ bytes, document }) => {
      const body = withoutMark(bytes)
      keepDocument(body, document)
      return body
    })
  }
}

const noBody = Effect.succeed(new Uint8Array())

const watchNothing: BodyWatch = { add: () => undefined }

const isSmall = (headers: HeaderValues): boolean =>
  Number(headerText(headers, "content-length") ?? Infinity) <= smallBodyBytesMax
