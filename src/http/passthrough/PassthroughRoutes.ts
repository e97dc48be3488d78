import { Context, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpServerError } from "effect/http"
import { IncomingMessage } from "node:http"
import { AppConfig } from "../../config/Config.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Passthrough } from "../../passthrough/Passthrough.ts"
import type { Relayed } from "../../passthrough/Passthrough.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import { authenticatePassthrough } from "../server/Authentication.ts"
import { isPlainJson, notJson } from "../server/JsonBody.ts"
import { RequestBodyLimiter } from "../server/RequestBodyLimiter.ts"
import { RequestTrace } from "../server/RequestTrace.ts"
import { begunOf } from "./HandedOffCall.ts"
import { headersOf, namesOf, usualType } from "./PassthroughAnswer.ts"
import type { HeaderNames } from "./PassthroughAnswer.ts"
import { targetOf } from "./PassthroughTarget.ts"

/** The vendors' own routes, and the aliases. Spec, points 2 to 4; contract 3. */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { answer } = yield* makeHandler
    yield* router.addAll([
      HttpRouter.route("*", "/vendors/*", answer),
      HttpRouter.route("*", "/v1/chat/completions", answer),
      // Also /v1/models itself
      HttpRouter.route("*", "/v1/models/*", answer)
    ])
  })
)

const makeHandler = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const room = yield* RequestBodyLimiter
  const passthrough = yield* Passthrough
  const authenticate = authenticatePassthrough(keys)
  const { serviceName } = yield* AppConfig
  const names = namesOf(serviceName)

  // Every passthrough call comes here: no generators, few steps.
  const answer = Effect.withFiber((fiber) => {
    const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
    const begun = begunOf(request.source)
    if (begun !== undefined) return Effect.map(begun.rest, (relayed) => respond(relayed, names))
    const { traceId } = Context.getUnsafe(fiber.context, RequestTrace)
    const target = targetOf(request.url)
    if (target === undefined) return noRoute
    const { headers, method } = request
    return Effect.flatMap(passthrough.resolve(target.vendor, method, target.path), (to) =>
      Effect.flatMap(authenticate(to.route.meter.per !== "nothing"), ({ principal, token }) => {
        const { query } = target
        const answered = Effect.flatMap(method === "POST" ? readBody(request) : emptyBody, (body) =>
          passthrough.forward({ principal, to, query, headers, body, traceId })
        )
        return room
          .within(
            request,
            principal.userId
          )(answered)
          .pipe(
            Effect.map((relayed) => respond(relayed, names)),
            Effect.tapError((error) => Effect.sync(() => forgetDead(keys, token, error)))
          )
      })
    )
  })
  return { answer }
})

const noRoute = Effect.fail(problem(2006, "There is no such route"))

/** A recognized key that turned out to be dead is looked up again the next time. */
export const forgetDead = (
  keys: ApiKeys["Service"],
  token: string,
  error: Problem | StoreUnavailable | HttpServerError.HttpServerError
): void => {
  if (error._tag === "Problem" && error.code === 1003) keys.evict(token)
}

const noBody = new Uint8Array()
const emptyBody = Effect.succeed(noBody)

/**
 * The whole body: what it may cost stands in it. 2003 as everywhere (contract 2). Reads the body off Node's own request, which costs half of what the general way does; the general
 * way is left for a request that announces no length, or waits for leave to send.
 */
const readBody = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Uint8Array, Problem | HttpServerError.HttpServerError> => {
  const { headers, source } = request
  if (!isPlainJson(headers)) return notJson
  return source instanceof IncomingMessage &&
    headers["content-length"] !== undefined &&
    headers["expect"] === undefined
    ? readNode(source)
    : Effect.map(request.arrayBuffer, (buffer) => new Uint8Array(buffer))
}

const readNode = (source: IncomingMessage) =>
  Effect.callback<Uint8Array, Problem>((resume) => {
    onBody(source, (body) => resume(Effect.succeed(body)))
    source.once("error", () => resume(Effect.fail(problem(2002, "The body could not be read"))))
  })

/** Hears of the whole body, if it ever comes. */
export const onBody = (source: IncomingMessage, done: (body: Uint8Array) => void): void => {
  const chunks: Array<Buffer> = []
  source.on("data", (chunk: Buffer) => {
    chunks.push(chunk)
  })
  // Once in any case
  source.on("end", () => done(chunks.length === 1 ? (chunks[0] ?? noBody) : Buffer.concat(chunks)))
}

const respond = (relayed: Relayed, names: HeaderNames): HttpServerResponse.HttpServerResponse => {
  const { body, status } = relayed
  const headers = headersOf(relayed, names)
  const type = headers["content-type"]
  return body instanceof Uint8Array
    ? HttpServerResponse.uint8Array(body, {
        status,
        headers,
        contentType: type ?? usualType
      })
    : HttpServerResponse.raw(body, {
        status,
        headers,
        ...(type === undefined ? {} : { contentType: type })
      })
}
