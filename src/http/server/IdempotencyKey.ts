import { Effect } from "effect"
import type { Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { createHash } from "node:crypto"
import type { Hash } from "node:crypto"
import { idempotencyKeyCharactersMax } from "../../domain/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import type { RequestHash } from "../../domain/RequestHash.ts"
import type { JsonBody } from "./JsonBody.ts"
import { pathOf } from "./Problems.ts"

/** A repeated request has the same method, path and parsed body. */
export interface IdempotencyKey extends RequestHash {
  readonly key: string
}

/**
 * The header `Idempotency-Key`, 1 to 255 characters, if there is one. `query`, with its `?`: what of it makes
 * another request. docs/reference/tasks.md#idempotency
 */
export const readIdempotencyKey = (
  request: HttpServerRequest.HttpServerRequest,
  body: JsonBody,
  query = ""
): Effect.Effect<Option.Option<IdempotencyKey>, Problem> => {
  const key = request.headers["idempotency-key"]
  if (key === undefined) return Effect.succeedNone
  if (key.length === 0 || key.length > idempotencyKeyCharactersMax) {
    const detail = `Expected 1 to ${idempotencyKeyCharactersMax} characters`
    return Effect.fail(invalid([{ pointer: "#/headers/idempotency-key", detail }]))
  }
  const target = `${request.method} ${pathOf(request)}${query}`
  return Effect.succeedSome({ key, ...requestHashOf(target, body) })
}

/** `target`: the method and the path. */
export const requestHashOf = (target: string, body: JsonBody): RequestHash => {
  if (hasManyValues(body.bytes)) {
    return { requestHash: createHash("sha256").update(`${target}\n`).update(body.bytes).digest() }
  }
  const parsed = createHash("sha256").update(`parsed ${target}\n`)
  addValue(parsed, body.value)
  return { requestHash: parsed.digest() }
}

/** No body that is accepted has as many; a walk over millions would hold the event loop for seconds. */
const parsedValuesMax = 10_000

/** Each value but the first has one of these before it; texts may have some more. */
const valueMarks = [..."[{,"].map((mark) => mark.charCodeAt(0))

const hasManyValues = (bytes: Uint8Array): boolean => {
  let values = 0
  for (const mark of valueMarks) {
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
      values += 1
      if (values > parsedValuesMax) return true
    }
  }
  return false
}

/** What ends a list or an object; no value of JSON is one. */
const end = Symbol("end")

/**
 * Adds a value, members in the order of their names. Every part has a tag and a length or an end, so
 * that no two values add the same. Without recursion: a body may be nested deeply.
 */
const addValue = (hash: Hash, root: unknown): void => {
  const open: Array<unknown> = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (value === end) {
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
