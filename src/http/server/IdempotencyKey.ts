import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { createHash } from "node:crypto"
import type { Hash } from "node:crypto"
import { LongText } from "../../domain/json/LongText.ts"
import { idempotencyKeyCharactersMax } from "../../domain/limits/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import type { RequestHash } from "../../domain/RequestHash.ts"
import { inSlices, sliceBytes } from "../../domain/shares/Slices.ts"
import type { Sliced } from "../../domain/shares/Slices.ts"
import type { JsonBody } from "./bodies/JsonBody.ts"
import { pathOf } from "./problems/Problems.ts"

/** A repeat has the same method, path and parsed body. */
export interface IdempotencyKey extends RequestHash {
  readonly key: string
}

/**
 * Reads the `Idempotency-Key` header, 1 to 255 characters, if present. `query` (including `?`) is the part of the query
 * that distinguishes requests. docs/reference/tasks.md#idempotency
 */
export const readIdempotencyKey = (
  request: HttpServerRequest.HttpServerRequest,
  body: JsonBody,
  query = ""
): Effect.Effect<Option.Option<IdempotencyKey>, Problem> =>
  idempotencyKeyOf(
    request.headers["idempotency-key"],
    `${request.method} ${pathOf(request)}${query}`,
    body.value
  )

/** The same for a request whose body has already been read. */
export const idempotencyKeyOf = (
  key: string | undefined,
  target: string,
  value: unknown
): Effect.Effect<Option.Option<IdempotencyKey>, Problem> => {
  if (key === undefined) return Effect.succeedNone
  return Effect.andThen(
    refuseLongKey(key),
    Effect.map(requestHashOf(target, value), (hash) => Option.some({ key, ...hash }))
  )
}

/** Refuses an `Idempotency-Key` of another length, also where it has no effect. */
export const refuseLongKey = (key: string | undefined): Effect.Effect<void, Problem> => {
  if (key === undefined || (key.length > 0 && key.length <= idempotencyKeyCharactersMax)) {
    return Effect.void
  }
  const detail = `Expected 1 to ${idempotencyKeyCharactersMax} characters`
  return Effect.fail(invalid([{ pointer: "#/headers/idempotency-key", detail }]))
}

/**
 * Hashes a request; `target` is its method and path. Works in slices, because a body may have many values or long
 * strings.
 */
export const requestHashOf = (target: string, value: unknown): Effect.Effect<RequestHash> =>
  inSlices(function* () {
    const hash = createHash("sha256").update(`parsed ${target}\n`)
    yield* addValue(hash, value)
    return { requestHash: hash.digest() }
  })

/** How many values are hashed in one turn; each takes about a microsecond. */
const valuesAtOnce = 2048

/** Marks the end of a list or an object. It is not a JSON value. */
const end = Symbol("end")

/**
 * Adds a value to the hash, with members sorted by name. Every part has a tag and a length or an end, so different
 * values have different input. Not recursive, because a body may be deeply nested.
 */
function* addValue(hash: Hash, root: unknown): Sliced<void> {
  const open: Array<unknown> = [root]
  for (let count = 1; open.length > 0; count += 1) {
    if (count % valuesAtOnce === 0) yield
    const value = open.pop()
    if (value instanceof LongText) {
      const bytes = yield* value.bytes()
      hash.update(`s${bytes.length}:`)
      yield* addBytes(hash, bytes)
    } else if (value === end) {
      hash.update("]")
    } else if (typeof value === "string") {
      hash.update(`s${value.length}:`).update(value)
    } else if (Array.isArray(value)) {
      hash.update("[")
      open.push(end)
      for (let at = value.length - 1; at >= 0; at -= 1) open.push(value[at])
    } else if (typeof value === "object" && value !== null) {
      hash.update("{")
      open.push(end)
      const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? 1 : -1))
      for (const [name, member] of members) open.push(member, name)
    } else {
      hash.update(`${value};`)
    }
  }
}

/** Hashes bytes in slices. */
export function* addBytes(hash: Hash, bytes: Uint8Array): Sliced<void> {
  for (let at = 0; at < bytes.length; at += hashedAtOnce) {
    if (at > 0) yield
    hash.update(bytes.subarray(at, at + hashedAtOnce))
  }
}

const hashedAtOnce = 64 * sliceBytes
