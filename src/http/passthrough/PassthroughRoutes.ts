import { Context, Effect } from "effect"
import { Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { IncomingMessage } from "node:http"
import type { OpenRoute } from "../../catalog/OpenRoutes.ts"
import { AppConfig } from "../../config/Config.ts"
import { keepDocument, withoutMark } from "../../domain/JsonDocument.ts"
import { problem } from "../../domain/Problem.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import type { Relayed } from "../../passthrough/Passthrough.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { authenticatePassthrough } from "../server/Authentication.ts"
import { CollectedBody } from "../server/BodyReader.ts"
import { CurrentBodyTurns } from "../server/BodyTurns.ts"
import { readDocument, readUnparsed } from "../server/JsonBody.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { RequestBodyLimiter } from "../server/RequestBodyLimiter.ts"
import { RequestTrace } from "../server/RequestTrace.ts"
import { makeSessionUseOf } from "../server/SessionKeys.ts"
import { handedOffCallOf } from "./HandedOffCall.ts"
import type { HandedOffCall } from "./HandedOffCall.ts"
import { responseHeaders, headerNames, defaultContentType } from "./PassthroughHeaders.ts"
import type { HeaderNames } from "./PassthroughHeaders.ts"
import { aliases, targetOf, taskShapes } from "./PassthroughTarget.ts"

/** The vendors' own routes, and the aliases. docs/reference/passthrough.md#paths */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { handle } = yield* makeHandler
    yield* router.addAll([
      HttpRouter.route("*", "/vendors/*", handle),
      ...aliases.keys().map((path) => HttpRouter.route("*", `/${path.slice(1)}`, handle)),
      // Also /v1/models itself
      HttpRouter.route("*", "/v1/models/*", handle),
      HttpRouter.route("*", "/v1/*", noAlias)
    ])
  })
)

const makeHandler = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const bodies = yield* RequestBodyLimiter
  const turns = yield* CurrentBodyTurns
  const passthrough = yield* Passthrough
  const authenticateAt = authenticatePassthrough(keys, yield* makeSessionUseOf)
  const authenticate = ({ meter, provider }: OpenRoute, key: string | undefined) =>
    authenticateAt(meter.per !== "nothing", provider === "gemini" ? key : undefined)
  const { serviceName } = yield* AppConfig
  const names = headerNames(serviceName)
  const maxCostName = maxCostHeader(serviceName)
  const lookAgain = makeLookAgain(keys, authenticate)

  // On the path of every passthrough call: no generators, few steps
  const handle = Effect.withFiber((fiber) => {
    const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
    const handedOff = handedOffCallOf(request.source)
    if (handedOff !== undefined) {
      return Effect.map(lookAgain(handedOff, undefined), (relayed) => respond(relayed, names))
    }
    const { traceId } = Context.getUnsafe(fiber.context, RequestTrace)
    const target = targetOf(request.url)
    if (target === undefined) return noRoute
    const { headers, method } = request
    return Effect.flatMap(passthrough.resolve(target.vendor, method, target.path), (to) =>
      Effect.flatMap(authenticate(to.route, target.key), ({ principal, token }) => {
        const { key, query } = target
        const { route } = to
        const forwarded = Effect.flatMap(readMaxCost(headers, maxCostName), (maxCost) =>
          Effect.flatMap(method === "POST" ? readBody(to.route) : emptyBody, (body) => {
            const sent = maxCost === undefined ? headers : Headers.remove(headers, maxCostName)
            const call = { principal, to, query, headers: sent, body, traceId, maxCost }
            const forward = (principal: Principal) => passthrough.forward({ ...call, principal })
            return Effect.andThen(
              turns.take(principal.userId, body.length),
              lookAgain({ rest: passthrough.forward(call), token, route, forward }, key)
            )
          })
        )
        return bodies
          .within(
            request,
            principal.userId
          )(forwarded)
          .pipe(Effect.map((relayed) => respond(relayed, names)))
      })
    )
  })
  return { handle }
})

const noRoute = Effect.fail(problem(2006, "There is no such route"))

const noAlias = Effect.fail(
  problem(
    2006,
    `There is no such route. At /v1 are: ${[...aliases.keys(), "/v1/models", ...taskShapes].join(", ")}; every open route of a vendor is below /vendors/{vendor}`
  )
)

/**
 * Goes on with a call. The store refuses a cached key that has been revoked or changed since it was read:
 * it is read again, and the call is made once more if the key may be used. Nothing was held or sent.
 */
const makeLookAgain =
  <E, R>(
    keys: ApiKeys["Service"],
    authenticate: (
      route: OpenRoute,
      queryKey: string | undefined
    ) => Effect.Effect<{ readonly principal: Principal }, E, R>
  ) =>
  (call: Omit<HandedOffCall, "trace">, queryKey: string | undefined) =>
    Effect.catchIf(
      call.rest,
      (error) => error._tag === "Problem" && error.code === 1003,
      () => {
        keys.evict(call.token)
        return Effect.flatMap(authenticate(call.route, queryKey), ({ principal }) =>
          call.forward(principal)
        )
      }
    )

const noBody = new Uint8Array()
const emptyBody = Effect.succeed(noBody)

/** The whole body. Where its tokens are paid, the price depends on what is in it. */
const readBody = ({ meter }: OpenRoute) => (meter.per === "tokens" ? readPriced : readUnparsed)

const readPriced = Effect.map(readDocument, ({ bytes, document }) => {
  const body = withoutMark(bytes)
  keepDocument(body, document)
  return body
})

/** Calls `done` with the whole body. It never calls for a body that does not end. */
export const onBody = (source: IncomingMessage, done: (body: Uint8Array) => void): void => {
  const collected = new CollectedBody(source.headers["content-length"], Infinity)
  source.on("data", (chunk: Buffer) => {
    collected.add(chunk)
  })
  source.on("end", () => done(collected.take()[0] ?? noBody))
}

const respond = (relayed: Relayed, names: HeaderNames): HttpServerResponse.HttpServerResponse => {
  const { body, status } = relayed
  const headers = responseHeaders(relayed, names)
  const type = headers["content-type"]
  return body instanceof Uint8Array
    ? HttpServerResponse.uint8Array(body, {
        status,
        headers,
        contentType: type ?? defaultContentType
      })
    : HttpServerResponse.raw(body, {
        status,
        headers,
        ...(type === undefined ? {} : { contentType: type })
      })
}
