import { Effect, Schema } from "effect"
import { Headers, HttpServerRequest } from "effect/http"
import { problem } from "../../domain/Problem.ts"
import { headerText } from "./HeaderText.ts"
import type { HeaderValues } from "./HeaderText.ts"

/** A JSON body: its bytes, for the idempotency hash, and its value. */
export interface JsonBody {
  readonly bytes: Uint8Array
  readonly value: unknown
}

const jsonType = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/iu
const strictUtf8 = new TextDecoder("utf-8", { fatal: true })

/** The headers declare the body as JSON and not compressed. ADR 0043. */
export const isPlainJson = (headers: HeaderValues): boolean =>
  jsonType.test(headerText(headers, "content-type") ?? "") &&
  (headerText(headers, "content-encoding") ?? "identity") === "identity"

/**
 * For routes of `HttpApi`, which reads `application/json` alone: other names of JSON become it, and a type without a
 * body is left out. Before the body is read. docs/reference/http.md#request-bodies
 */
export const withJsonType = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.updateService(self, HttpServerRequest.HttpServerRequest, (request) => {
    const { headers } = request
    if (isPlainJson(headers)) {
      return request.modify({ headers: Headers.set(headers, "content-type", "application/json") })
    }
    return announcesBody(request)
      ? request
      : request.modify({ headers: Headers.remove(headers, "content-type") })
  })

export const announcesBody = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined

export const notJson = problem(
  2003,
  "Send the body as plain JSON with Content-Type: application/json"
)

/**
 * Reads a JSON request body: 2003 when it is not declared as JSON, 2002 when it does not parse.
 * `GlobalMiddleware` limits its length. docs/reference/http.md#request-bodies
 */
export const readJsonBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!isPlainJson(request.headers)) return yield* notJson
  const bytes = new Uint8Array(yield* request.arrayBuffer)
  const text = yield* Effect.try({
    try: () => strictUtf8.decode(bytes),
    catch: () => problem(2002, "The body is not valid UTF-8")
  })
  const value = yield* Effect.mapError(parseJson(text), () =>
    problem(2002, text.trim() === "" ? "The body is empty" : "The body is not valid JSON")
  )
  return { bytes, value } satisfies JsonBody
})

const parseJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))
