import { DateTime, Duration, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentCaller } from "../../../contract/Access.ts"
import { Api } from "../../../contract/Api.ts"
import type { ApiKeyChange, NewApiKey } from "../../../contract/manage/ApiKeysApi.ts"
import * as Credits from "../../../domain/Credits.ts"
import { ApiKeyId } from "../../../domain/Ids.ts"
import type { UserId } from "../../../domain/Ids.ts"
import { invalid, problem } from "../../../domain/Problem.ts"
import type { FieldFault } from "../../../domain/Problem.ts"
import type { Scope } from "../../../domain/Scope.ts"
import { resetAfter } from "../../../domain/SpendLimit.ts"
import { readsOf } from "../../../process/audit/AuditLog.ts"
import { ApiKeys, resetAlone } from "../../../users/ApiKeys.ts"
import type { ApiKeyRow, KeyChange, KeyDetails, KeyLimits } from "../../../users/ApiKeys.ts"
import { requireReader, requireUser } from "../../server/access/Authentication.ts"
import { readPage, toPage } from "../Paging.ts"

/** A user's own API keys. */
export const layer = HttpApiBuilder.group(
  Api,
  "apiKeys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* ApiKeys
    return handlers.handleAll({
      createApiKey: Effect.fnUntraced(function* ({ payload }) {
        const userId = yield* requireUser
        return yield* createKey(keys, userId, payload)
      }),
      listApiKeys: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, ApiKeyId)
        const rows = yield* keys.list(userId, { before, limit: limit + 1 })
        const now = yield* DateTime.now
        return yield* toPage(rows, limit, (row) => row.id, showDetails(now))
      }),
      getApiKey: Effect.fnUntraced(function* ({ params, query }) {
        const owner =
          query.user_id === undefined
            ? yield* ownerOfKeys
            : Option.some(yield* requireReader(query))
        const details = yield* keys.find(owner, params.id)
        yield* readsOf(details.userId)
        return showDetails(yield* DateTime.now)(details)
      }),
      updateApiKey: Effect.fnUntraced(function* ({ params, payload }) {
        const owner = yield* ownerOfKeys
        const caller = yield* CurrentCaller
        if (caller._tag === "User" && caller.key?.apiKeyId === params.id) {
          return yield* problem(1004, "An API key cannot change itself: use another one")
        }
        const faults = [
          ...expiryFaults(yield* DateTime.now, payload.expires_at),
          ...(yield* resetFaults(keys.find(owner, params.id), payload))
        ]
        if (faults.length > 0) return yield* invalid(faults)
        const details = yield* keys.update(owner, params.id, changeOf(payload))
        return showDetails(yield* DateTime.now)(details)
      }),
      rotateApiKey: Effect.fnUntraced(function* ({ params, payload }) {
        const owner = yield* ownerOfKeys
        const grace = Duration.seconds(payload?.grace_seconds ?? 0)
        const { details, key } = yield* keys.rotate(owner, params.id, grace)
        return { ...showDetails(yield* DateTime.now)(details), key }
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

/** The owner to filter by; none for the operator, who may read and change the keys of all users. */
const ownerOfKeys = Effect.map(CurrentCaller, (caller) =>
  caller._tag === "User" ? Option.some(caller.userId) : Option.none()
)

const showDetails = (now: DateTime.Utc) => (row: KeyDetails) => ({
  ...showKey(row),
  last_used_at: row.lastUsedAt,
  ...spendLimitOf(row, now),
  allowed_models: row.allowedModels,
  rate_limit_per_minute: row.rateLimitPerMinute,
  concurrent_tasks: row.concurrentTasks,
  old_key_expires_at: oldUntil(row, now)
})

/** Both secrets end with the key. */
const oldUntil = ({ expiresAt, previousKeyUntil }: KeyDetails, now: DateTime.Utc) => {
  if (previousKeyUntil === null) return null
  const until = expiresAt === null ? previousKeyUntil : DateTime.min(previousKeyUntil, expiresAt)
  return DateTime.isLessThan(now, until) ? until : null
}

const spendLimitOf = (
  { held, spendLimit: amount, spendReset: reset, spent }: KeyDetails,
  now: DateTime.Utc
) => {
  if (amount === null || reset === null) return noSpendLimit
  const remaining = amount - spent - held
  return {
    spend_limit: amount,
    reset,
    spent,
    held,
    remaining: Credits.make(remaining > 0n ? remaining : 0n),
    resets_at: resetAfter(reset, now)
  }
}

/** Shown for a key without a spend limit, for which the store counts nothing. */
const noSpendLimit = {
  spend_limit: null,
  reset: null,
  spent: null,
  held: null,
  remaining: null,
  resets_at: null
}

const changeOf = (payload: typeof ApiKeyChange.Type): KeyChange => ({
  ...(payload.name === undefined ? {} : { name: payload.name }),
  ...limitsOf(payload),
  ...(payload.expires_at === undefined ? {} : { expiresAt: payload.expires_at })
})

const limitsOf = (payload: typeof ApiKeyChange.Type): KeyLimits => ({
  ...(payload.spend_limit === undefined ? {} : { spendLimit: payload.spend_limit }),
  ...(payload.reset === undefined ? {} : { reset: payload.reset }),
  ...(payload.allowed_models === undefined ? {} : { allowedModels: payload.allowed_models }),
  ...(payload.rate_limit_per_minute === undefined
    ? {}
    : { rateLimitPerMinute: payload.rate_limit_per_minute }),
  ...(payload.concurrent_tasks === undefined ? {} : { concurrentTasks: payload.concurrent_tasks })
})

const expiryFaults = (
  now: DateTime.Utc,
  expiresAt: DateTime.Utc | null | undefined
): ReadonlyArray<FieldFault> =>
  expiresAt && DateTime.isLessThanOrEqualTo(expiresAt, now)
    ? [{ pointer: "#/expires_at", detail: "Expected a time in the future" }]
    : []

/**
 * A `reset` requires a spend limit in the same request or on the key. Checked here so that this fault is reported
 * together with the others; `api_key_update` checks again under a lock, in case the limit changes in between.
 */
const resetFaults = <E, R>(
  found: Effect.Effect<KeyDetails, E, R>,
  { reset, spend_limit: limit }: typeof ApiKeyChange.Type
) =>
  Effect.gen(function* () {
    if (reset === undefined) return []
    const amount = limit === undefined ? (yield* found).spendLimit : limit
    return amount === null ? [resetAlone] : []
  })

/** The scopes of a key that is created without any. */
const defaultScopes: ReadonlyArray<Scope> = ["inference"]

/**
 * Creates a key with its limits for a user. Only this response contains the key. Refuses an expiry time in the past and
 * a `reset` without a spend limit.
 */
export const createKey = Effect.fnUntraced(function* (
  keys: ApiKeys["Service"],
  userId: UserId,
  payload: typeof NewApiKey.Type
) {
  const { expires_at: expiresAt, name, reset, scopes = defaultScopes, spend_limit } = payload
  const faults = [
    ...expiryFaults(yield* DateTime.now, expiresAt),
    ...(reset !== undefined && (spend_limit ?? null) === null ? [resetAlone] : [])
  ]
  if (faults.length > 0) return yield* invalid(faults)
  const { key, row } = yield* keys.create({
    userId,
    name,
    scopes,
    expiresAt: Option.fromNullishOr(expiresAt),
    limits: limitsOf(payload)
  })
  return { ...showKey(row), key }
})
