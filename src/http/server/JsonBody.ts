import { Effect, Result } from "effect"
import { Headers, HttpServerRequest } from "effect/http"
import { parseDocument, valueWithTexts } from "../../domain/JsonDocument.ts"
import { JsonScanner } from "../../domain/JsonScanner.ts"
import { problem } from "../../domain/Problem.ts"
import { inSlices } from "../../domain/Slices.ts"
import { readBytes } from "./BodyReader.ts"
import { headerText } from "./HeaderText.ts"
import type { HeaderValues } from "./HeaderText.ts"

/** A JSON body. Its long strings are `LongText`. */
export interface JsonBody {
  readonly value: unknown
}

const jsonType = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/iu

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
 * Reads a JSON request body: 2003 when it is not declared as JSON, 2002 when it does not parse or is too complex.
 * `GlobalMiddleware` limits its length. docs/reference/http.md#request-bodies
 */
export const readJsonBody = Effect.gen(function* () {
  const { document } = yield* readDocument
  return { value: yield* inSlices(() => valueWithTexts(document)) } satisfies JsonBody
})

/** The bytes of a JSON body whose structure is within limits; nobody has parsed them. */
const readScanned = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  if (!isPlainJson(headers)) return yield* notJson
  const scanner = new JsonScanner()
  return { bytes: yield* readBytes(scanner), scanner }
})

export const readUnparsed = Effect.map(readScanned, ({ bytes }) => bytes)

/** The bytes of a JSON body and what is in them, its long strings apart. */
export const readDocument = Effect.gen(function* () {
  const { bytes, scanner } = yield* readScanned
  const parsed = yield* inSlices(() => parseDocument(bytes, scanner))
  return Result.isFailure(parsed)
    ? yield* problem(2002, parsed.failure)
    : { bytes, document: parsed.success }
})
