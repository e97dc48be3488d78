import { Effect } from "effect"
import type { Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { createHash } from "node:crypto"
import { idempotencyKeyCharactersMax } from "../../domain/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"

/** A repeated request has the same method, path and body bytes. */
export interface IdempotencyKey {
  readonly key: string
  readonly requestHash: Uint8Array
}

/**
 * The header `Idempotency-Key`, 1 to 255 characters, if there is one.
 * docs/reference/tasks.md#idempotency
 */
export const readIdempotencyKey = (
  request: HttpServerRequest.HttpServerRequest,
  bytes: Uint8Array
): Effect.Effect<Option.Option<IdempotencyKey>, Problem> => {
  const key = request.headers["idempotency-key"]
  if (key === undefined) return Effect.succeedNone
  if (key.length === 0 || key.length > idempotencyKeyCharactersMax) {
    const detail = `Expected 1 to ${idempotencyKeyCharactersMax} characters`
    return Effect.fail(invalid([{ pointer: "#/headers/idempotency-key", detail }]))
  }
  const requestHash = createHash("sha256")
    .update(`${request.method} ${request.originalUrl.split("?", 1)[0]}\n`)
    .update(bytes)
    .digest()
  return Effect.succeedSome({ key, requestHash })
}
