import { Effect, Option } from "effect"
import { HttpEffect, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { routeAliases } from "../../catalog/RouteAliases.ts"
import { AppConfig } from "../../config/Config.ts"
import { problem } from "../../domain/Problem.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import type { Relayed } from "../../passthrough/PassthroughCall.ts"
import { readBytes } from "../server/bodies/BodyReader.ts"
import type { BodyWatch } from "../server/bodies/BodyReader.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { pathOf, problemOf } from "../server/problems/Problems.ts"
import { everyMethod } from "../server/Resource.ts"
import { makeClientCallOf, noRoute } from "./CallListener.ts"
import type { ClientRequest } from "./CallListener.ts"
import { defaultContentType, headerNames, responseHeaders } from "./PassthroughHeaders.ts"
import type { HeaderNames } from "./PassthroughHeaders.ts"
import { meantBy, taskShapes } from "./PassthroughTarget.ts"

/**
 * Handles the passthrough requests that `CallListener` does not: within a test process, in a service with a tracer, and
 * with an absolute URL as target. Also handles the other paths below `/v1`. docs/reference/passthrough.md#paths
 */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const handle = yield* makeHandle
    yield* router.addAll([
      HttpRouter.route("*", "/vendors/*", handle),
      ...routeAliases.keys().flatMap((path) => everyMethod(`/${path.slice(1)}`, handle)),
      // Also matches /v1/models itself
      HttpRouter.route("*", "/v1/models/*", handle),
      HttpRouter.route("*", "/v1/*", noAlias)
    ])
  })
)

const noAlias = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
  const meant = meantBy(pathOf(request))
  const rest =
    meant === undefined
      ? `. At /v1 are: ${[...routeAliases.keys(), "/v1/models", ...taskShapes].join(", ")}; every open route of a vendor is below /vendors/{vendor}`
      : `: ${meant.advice}`
  return problem(2006, `There is no such route${rest}`)
})

const makeHandle = Effect.gen(function* () {
  const callOf = yield* makeClientCallOf
  const passthrough = yield* Passthrough
  const { serviceName } = yield* AppConfig
  const names = headerNames(serviceName)
  return Effect.gen(function* () {
    const { traceId } = yield* RequestTrace
    const call = callOf(yield* clientRequest, traceId)
    if (call === undefined) return yield* noRoute
    yield* HttpEffect.appendPreResponseHandler((_request, response) =>
      Effect.succeed(HttpServerResponse.setHeaders(response, call.rateHeaders ?? {}))
    )
    return respond(yield* passthrough.call(call), names)
  })
})

const clientRequest = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const context = yield* Effect.context<HttpServerRequest.HttpServerRequest>()
  const { cookies, headers, method, source, url } = request
  const read = (watch: BodyWatch) =>
    readBytes(watch).pipe(
      Effect.provideContext(context),
      Effect.mapError((error) => Option.getOrElse(problemOf(error), () => unreadable))
    )
  return { cookies, headers, method, source, url, read } satisfies ClientRequest
})

const unreadable = problem(2002, "The body could not be read")

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
