import { Effect, Result } from "effect"
import { Headers, HttpServerRequest } from "effect/http"
import { parseDocument, valueWithTexts } from "../../../domain/json/JsonDocument.ts"
import { JsonScanner } from "../../../domain/json/JsonScanner.ts"
import { heavyBodyBytesMin } from "../../../domain/limits/ShareLimits.ts"
import { problem } from "../../../domain/Problem.ts"
import { CurrentBodyTurns } from "../../../domain/shares/BodyTurns.ts"
import { inSlices } from "../../../domain/shares/Slices.ts"
import { readKey } from "../access/ClientKeys.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"
import { readBytes } from "./BodyReader.ts"
import type { BodyWatch } from "./BodyReader.ts"

/** A JSON body. Its long strings are `LongText`. */
export interface JsonBody {
  readonly value: unknown
}

const jsonType = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/iu

/** Whether the headers declare the body as uncompressed JSON. ADR 0110. */
export const isPlainJson = (headers: HeaderValues): boolean =>
  jsonType.test(headerText(headers, "content-type") ?? "") && !isCompressed(headers)

/** Whether the body is compressed. Compressed bodies are refused. */
export const isCompressed = (headers: HeaderValues): boolean =>
  (headerText(headers, "content-encoding") ?? "identity") !== "identity"

/**
 * For routes of `HttpApi`, which accepts only `application/json`: replaces other JSON types with it, and removes the
 * type of a request without a body. Runs before the body is read. docs/reference/http.md#request-bodies
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
 * Reads a JSON request body. Fails with 2003 if it is not declared as JSON, and with 2002 if it does not parse or is
 * too complex. `GlobalMiddleware` limits its length. docs/reference/http.md#request-bodies
 */
export const readJsonBody = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const scanned = yield* readScanned({ headers, read: readBytes })
  if (scanned.bytes.length >= heavyBodyBytesMin) {
    const turns = yield* CurrentBodyTurns
    yield* turns.take(readKey(headers)?.digest ?? "", scanned.bytes.length)
  }
  const { document } = yield* parseScanned(scanned)
  return { value: yield* inSlices(() => valueWithTexts(document)) } satisfies JsonBody
})

/** The headers of a request and the reader of its body. */
export interface BodySource<E, R> {
  readonly headers: HeaderValues
  read(watch: BodyWatch): Effect.Effect<Uint8Array, E, R>
}

/** The bytes of a JSON body whose structure is within the limits. They are not parsed yet. */
export const readScanned = Effect.fnUntraced(function* <E, R>(source: BodySource<E, R>) {
  if (!isPlainJson(source.headers)) return yield* notJson
  const scanner = new JsonScanner()
  return { bytes: yield* source.read(scanner), scanner }
})

/** The bytes of a JSON body and the parsed document, with long strings kept separately. */
export const readDocumentOf = <E, R>(source: BodySource<E, R>) =>
  Effect.flatMap(readScanned(source), parseScanned)

interface ScannedBody {
  readonly bytes: Uint8Array
  readonly scanner: JsonScanner
}

const parseScanned = Effect.fnUntraced(function* ({ bytes, scanner }: ScannedBody) {
  const parsed = yield* inSlices(() => parseDocument(bytes, scanner))
  return Result.isFailure(parsed)
    ? yield* problem(2002, parsed.failure)
    : { bytes, document: parsed.success }
})
