import { Effect, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { problem } from "../domain/Problem.ts"

/** A JSON body: its bytes, for the idempotency hash, and its value. */
export interface JsonBody {
  readonly bytes: Uint8Array
  readonly value: unknown
}

const jsonType = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/iu
const strictUtf8 = new TextDecoder("utf-8", { fatal: true })

/**
 * Reads a JSON request body: 2003 when it is not JSON, 2004 when it is too large (told from its
 * length, before it is read), 2002 when it does not parse. Contract 2.
 */
export const readJsonBody = Effect.fnUntraced(function* (maxBytes: number) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const type = request.headers["content-type"] ?? ""
  if (!jsonType.test(type)) {
    return yield* problem(2003, "Send the body as JSON with Content-Type: application/json")
  }
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    return yield* problem(2004, `The body is larger than ${maxBytes} bytes`)
  }
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
