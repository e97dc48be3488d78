import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ApiKeyId } from "../../domain/Ids.ts"
import type { UserId } from "../../domain/Ids.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Scope } from "../../domain/Scope.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { ApiKeyRow } from "../../users/ApiKeys.ts"
import { requireReader, requireUser } from "../server/Authentication.ts"
import { Api } from "./Api.ts"
import { readPage, toPage } from "./Paging.ts"

/** A user's own API keys. */
export const layer = HttpApiBuilder.group(
  Api,
  "apiKeys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* ApiKeys
    return handlers.handleAll({
      createApiKey: Effect.fnUntraced(function* ({ payload }) {
        return yield* createKey(keys, yield* requireUser, payload)
      }),
      listApiKeys: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, ApiKeyId)
        const rows = yield* keys.list(userId, { before, limit: limit + 1 })
        return toPage(
          rows,
          limit,
          (row) => row.id,
          (row) => ({ ...showKey(row), last_used_at: row.lastUsedAt })
        )
      }),
      revokeApiKey: Effect.fnUntraced(function* ({ params }) {
        yield* keys.revoke(yield* requireUser, params.id)
      })
    })
  })
)

const showKey = (row: ApiKeyRow) => ({
  id: row.id,
  preview: row.preview,
  name: row.name,
  scopes: row.scopes,
  created_at: row.createdAt,
  expires_at: row.expiresAt
})

/** The scopes of a key that is created without scopes. */
const defaultScopes: ReadonlyArray<Scope> = ["inference"]

/** Creates a key for a user; only this response shows it. A key that has already expired is refused. */
export const createKey = Effect.fnUntraced(function* (
  keys: ApiKeys["Service"],
  userId: UserId,
  payload: {
    readonly name: string
    readonly scopes?: ReadonlyArray<Scope>
    readonly expires_at?: DateTime.Utc | null
  }
) {
  const expiresAt = Option.fromNullishOr(payload.expires_at)
  const now = yield* DateTime.now
  if (Option.exists(expiresAt, DateTime.isLessThanOrEqualTo(now))) {
    return yield* invalid([{ pointer: "#/expires_at", detail: "Expected a time in the future" }])
  }
  const { key, row } = yield* keys.create({
    userId,
    name: payload.name,
    scopes: payload.scopes ?? defaultScopes,
    expiresAt
  })
  return { ...showKey(row), key }
})
