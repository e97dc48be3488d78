import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpServerError } from "effect/http"
import { IncomingMessage } from "node:http"
import { AppConfig } from "../Config.ts"
import * as Credits from "../domain/Credits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { ApiKeys } from "../services/ApiKeys.ts"
import { Passthrough } from "../services/Passthrough.ts"
import type { Relayed } from "../services/Passthrough.ts"
import { authenticatePassthrough } from "./Authentication.ts"
import { BodyRoom } from "./BodyRoom.ts"
import { isPlainJson, notJson } from "./JsonBody.ts"
import { RequestTrace } from "./RequestTrace.ts"

/** Spec, point 4; contract 1: provider A is OpenAI. */
const aliasVendor = "openai"

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
  const room = yield* BodyRoom
  const passthrough = yield* Passthrough
  const { serviceName } = yield* AppConfig
  const header = (name: string) => `x-${serviceName}-${name}`.toLowerCase()
  const names = { cost: header("cost"), call: header("call-id"), sandbox: header("sandbox") }

  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const target = targetOf(request.url)
    if (target === undefined) return yield* problem(2006, "There is no such route")
    const to = yield* passthrough.resolve(target.vendor, request.method, target.path)
    const isMetered = to.route.meter.per !== "nothing"
    const { principal, token } = yield* authenticatePassthrough(isMetered)
    const { traceId } = yield* RequestTrace
    const { headers } = request
    const read = to.route.method === "POST" ? readBody(request) : Effect.succeed(noBody)
    const relayed = yield* room
      .within(request)(
        Effect.flatMap(read, (body) =>
          passthrough.forward({ principal, to, query: target.query, headers, body, traceId })
        )
      )
      .pipe(
        Effect.tapError((error) =>
          error._tag === "Problem" && error.code === 1003
            ? Effect.sync(() => keys.forget(token))
            : Effect.void
        )
      )
    return respond(relayed, names)
  })
  return { answer }
})

const noBody = new Uint8Array()

interface Target {
  readonly vendor: string
  /** Behind the vendor, as the client wrote it. */
  readonly path: string
  readonly query: string
}

/** Splits the raw request target; nothing is decoded here. */
const targetOf = (url: string): Target | undefined => {
  const mark = url.indexOf("?")
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? "" : withoutKey(url.slice(mark))
  if (path.startsWith("/v1/")) return { vendor: aliasVendor, path, query }
  const match = /^\/vendors\/([A-Za-z0-9._-]+)(\/.*)$/u.exec(path)
  return match?.[1] === undefined || match[2] === undefined
    ? undefined
    : { vendor: match[1], path: match[2], query }
}

/** A credential in the query is the client's, and goes no further. Nor do characters that no URL holds. */
const withoutKey = (query: string): string => {
  const kept = query
    .slice(1)
    .split("&")
    .filter((pair) => !/^(?:key|api_key|access_token)(?:=|$)/iu.test(decodedName(pair)))
    .join("&")
  return kept === "" ? "" : `?${kept.replaceAll(/[^\x21-\x7e]|#/gu, encodeURIComponent)}`
}

const decodedName = (pair: string): string => {
  const name = pair.split("=", 1)[0] ?? ""
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

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
    const chunks: Array<Buffer> = []
    source.on("data", (chunk: Buffer) => {
      chunks.push(chunk)
    })
    source.once("end", () =>
      resume(Effect.succeed(chunks.length === 1 ? (chunks[0] ?? noBody) : Buffer.concat(chunks)))
    )
    source.once("error", () => resume(Effect.fail(problem(2002, "The body could not be read"))))
  })

const respond = (
  { body, callId, cost, headers, sandbox, status }: Relayed,
  names: { readonly cost: string; readonly call: string; readonly sandbox: string }
): HttpServerResponse.HttpServerResponse => {
  if (sandbox) headers[names.sandbox] = "true"
  if (callId !== undefined) headers[names.call] = callId
  if (cost !== undefined) headers[names.cost] = Credits.format(cost)
  const type = headers["content-type"]
  return body instanceof Uint8Array
    ? HttpServerResponse.uint8Array(body, {
        status,
        headers,
        contentType: type ?? "application/json"
      })
    : HttpServerResponse.raw(body, {
        status,
        headers,
        ...(type === undefined ? {} : { contentType: type })
      })
}
