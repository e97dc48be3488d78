import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { hash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"
import { AppConfig } from "../config/Config.ts"
import type { TaskView } from "../db/TaskRow.ts"
import { makeApiKeyId } from "../domain/Ids.ts"
import type { ApiKeyId, TaskId, UserId } from "../domain/Ids.ts"
import { reservationMillis } from "../domain/Limits.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { Scope } from "../domain/Scope.ts"
import { Hints } from "../process/Hints.ts"
import { AdmissionStore } from "./AdmissionStore.ts"
import type { Admission, AdmissionRequest, AdmittedKey, Rate } from "./AdmissionStore.ts"
import { UserStore } from "./UserStore.ts"
import type { ApiKeyRow } from "./UserStore.ts"

export type { Rate } from "./AdmissionStore.ts"
export type { ApiKeyRow } from "./UserStore.ts"

/** Who calls: the user, through which key, allowed to do what. */
export interface Principal {
  readonly userId: UserId
  readonly apiKeyId: ApiKeyId
  readonly scopes: ReadonlyArray<Scope>
}

/** Names a key in memory without holding it: SHA-256 as Base64. */
export const KeyDigest = Schema.String.pipe(Schema.brand("KeyDigest"))
export type KeyDigest = typeof KeyDigest.Type

/** A request that may use a model. */
export interface Admitted {
  readonly principal: Principal
  /** `None`: there is no limit. Sent as `RateLimit-*`; not admitted is code 1201. */
  readonly rate: Option.Option<Rate>
  /** The task that the request names, if it belongs to this user. */
  readonly task: Option.Option<TaskView>
}

/** A new key; the key itself is shown only now. */
export interface CreatedKey {
  readonly key: string
  readonly row: ApiKeyRow
}

/** API keys: created, found by their hash, revoked. docs/reference/keys-and-limits.md#api-keys */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    readonly create: (request: {
      readonly userId: UserId
      readonly name: string
      readonly scopes: ReadonlyArray<Scope>
      readonly expiresAt: Option.Option<DateTime.Utc>
    }) => Effect.Effect<CreatedKey, StoreUnavailable>
    /** Fails with 1002 (malformed or unknown) or 1003 (expired or revoked). */
    readonly authenticate: (key: string) => Effect.Effect<Principal, Problem | StoreUnavailable>
    /**
     * The same for an inference request, counted against the key's request rate; 1004 without the
     * scope. The same statement reads the task, if one is named.
     */
    readonly admit: (
      key: string,
      taskId: Option.Option<TaskId>
    ) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /**
     * As `admit`, but without a request rate a key that was valid before is taken from a cache.
     * Only for a caller that checks the key again in the statement that holds money
     * (`Metering.open`). ADR 0072.
     */
    readonly admitCached: (key: string) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /**
     * The cached principal of a key, synchronously: for callers outside a fiber.
     * `undefined` when the store must be asked.
     */
    readonly cachedPrincipal: (digest: KeyDigest) => Principal | undefined
    /** Removes a key from the cache: it was found to be expired or revoked. */
    readonly evict: (key: string) => void
    readonly list: (
      userId: UserId,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<ApiKeyRow>, StoreUnavailable>
    /** Fails with 2005. When it returns, no process admits a call with this key any more. */
    readonly revoke: (
      userId: UserId,
      id: ApiKeyId
    ) => Effect.Effect<void, Problem | StoreUnavailable>
  }
>()("gateway/users/ApiKeys") {
  static readonly layer = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const store = yield* UserStore
      const admissions = yield* AdmissionStore
      const { rateLimitPerMinute, userRateLimitPerMinute } = yield* AppConfig
      const limits = { perMinute: rateLimitPerMinute, userPerMinute: userRateLimitPerMinute }
      const isLimited = rateLimitPerMinute > 0 || userRateLimitPerMinute > 0
      const admit = makeAdmit(store, admissions, limits)
      const cache = new Map<KeyDigest, Principal>()
      const hints = yield* Hints
      const forget = (id: string) => {
        for (const [digest, { apiKeyId }] of cache) if (apiKeyId === id) cache.delete(digest)
      }
      hints.subscribe("key", forget)
      const cachedPrincipal = (digest: KeyDigest) => (isLimited ? undefined : cache.get(digest))
      return ApiKeys.of({
        create: Effect.fn("ApiKeys.create")(function* (request) {
          const now = yield* DateTime.now
          const key = generateKey()
          const row = yield* store.createKey({
            id: makeApiKeyId(DateTime.toEpochMillis(now)),
            userId: request.userId,
            keyHash: hashKey(key),
            preview: `sk-...${key.slice(-4)}`,
            name: request.name,
            scopes: request.scopes,
            expiresAt: Option.getOrNull(request.expiresAt),
            now
          })
          return { key, row }
        }),
        authenticate: Effect.fnUntraced(function* (key: string) {
          if (!isWellFormed(key)) return yield* malformed
          const now = yield* DateTime.now
          const row = yield* known(yield* store.findKeyByHash(hashKey(key)))
          const invalid = faultOf(row, now)
          if (invalid !== undefined) return yield* invalid
          if (!isRecentlyUsed(row, now)) yield* store.touchKey(row.id, now)
          return { userId: row.userId, apiKeyId: row.id, scopes: row.scopes }
        }),
        admit,
        admitCached: (key) => {
          const digest = digestOf(key)
          const principal = cachedPrincipal(digest)
          return principal === undefined
            ? Effect.tap(admit(key, Option.none()), ({ principal }) =>
                Effect.sync(() => addToCache(cache, digest, principal))
              )
            : Effect.succeed({ principal, rate: Option.none(), task: Option.none() })
        },
        cachedPrincipal,
        evict: (key) => {
          cache.delete(digestOf(key))
        },
        list: store.listKeys,
        revoke: Effect.fn("ApiKeys.revoke")(function* (userId, id) {
          const revoked = yield* store.revokeKey(userId, id, yield* DateTime.now)
          if (Option.isNone(revoked)) return yield* problem(2005, `There is no API key ${id}`)
          forget(id)
          hints.publishUnsafe("key", id)
          // A process with a reservation may admit calls until it settles it
          if (revoked.value) yield* Effect.sleep(reservationMillis)
        })
      })
    })
  )
}

const malformed = problem(1002, "This API key is malformed: check that it was copied whole")

const unknown = problem(1002, "This API key is unknown")

const known = <A>(found: Option.Option<A>): Effect.Effect<A, Problem> =>
  Effect.mapError(Effect.fromOption(found), () => unknown)

const outOfScope = Effect.fail(problem(1004, "This API key lacks the scope inference"))

const faultOf = (row: AdmittedKey, now: DateTime.Utc): Problem | undefined => {
  if (row.revokedAt !== null) return problem(1003, "This API key was revoked")
  return row.expiresAt !== null && DateTime.isLessThanOrEqualTo(row.expiresAt, now)
    ? problem(1003, "This API key has expired")
    : undefined
}

/** On the path of every inference request: no generators, one step after the statement. */
const makeAdmit = (
  store: UserStore["Service"],
  admissions: AdmissionStore["Service"],
  limits: Pick<AdmissionRequest, "perMinute" | "userPerMinute">
) => {
  const check = (
    admission: Admission,
    now: DateTime.Utc
  ): Effect.Effect<Admitted, Problem | StoreUnavailable> => {
    const { key } = admission
    const invalid = faultOf(key, now)
    if (invalid !== undefined) return Effect.fail(invalid)
    if (!key.scopes.includes("inference")) return outOfScope
    const admitted = toAdmitted(admission)
    return isRecentlyUsed(key, now)
      ? Effect.succeed(admitted)
      : Effect.as(store.touchKey(key.id, now), admitted)
  }
  return (key: string, taskId: Option.Option<TaskId>) =>
    isWellFormed(key)
      ? Effect.flatMap(DateTime.now, (now) =>
          Effect.flatMap(
            admissions.admit({ keyHash: hashKey(key), ...limits, now, taskId }),
            (found) => (Option.isNone(found) ? unknown : check(found.value, now))
          )
        )
      : malformed
}

const toAdmitted = ({ key, rate, task }: Admission): Admitted => ({
  principal: { userId: key.userId, apiKeyId: key.id, scopes: key.scopes },
  rate,
  task
})

/** `last_used_at` is written at most once a minute, so that a busy key costs no write a request. */
const touchMillis = 60_000

const isRecentlyUsed = ({ lastUsedAt }: AdmittedKey, now: DateTime.Utc): boolean =>
  lastUsedAt !== null &&
  DateTime.toEpochMillis(lastUsedAt) >= DateTime.toEpochMillis(now) - touchMillis

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const randomCharacters = 40
const checkCharacters = 6

/** Base 62 of a number, padded. */
const base62 = (value: number, characters: number): string => {
  let rest = value
  let text = ""
  for (let i = 0; i < characters; i += 1) {
    text = `${alphabet[rest % 62]}${text}`
    rest = Math.floor(rest / 62)
  }
  return text
}

/**
 * `sk-`, 40 random characters (238 bits) and 6 of checksum, which distinguishes a
 * typing error from an unknown key.
 */
const generateKey = (): string => {
  let secret = ""
  while (secret.length < randomCharacters) {
    for (const byte of randomBytes(randomCharacters)) {
      // 248 is the largest multiple of 62 in a byte: larger values would favour some characters
      if (byte < 248 && secret.length < randomCharacters) secret += alphabet[byte % 62]
    }
  }
  return `sk-${secret}${base62(crc32(secret), checkCharacters)}`
}

const isWellFormed = (key: string): boolean => {
  const match = /^sk-([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/u.exec(key)
  return match?.[1] !== undefined && base62(crc32(match[1]), checkCharacters) === match[2]
}

/** Keys in the cache of one process. */
const cachedKeysMax = 10_000

const addToCache = (
  cache: Map<KeyDigest, Principal>,
  digest: KeyDigest,
  principal: Principal
): void => {
  if (cache.size >= cachedKeysMax) cache.clear()
  cache.set(digest, principal)
}

export const digestOf = (key: string): KeyDigest => KeyDigest.make(hash("sha256", key, "base64"))

/**
 * A plain hash: keys have 238 random bits, so a slow hash would add no
 * safety, and an index finds it.
 */
const hashKey = (key: string): Uint8Array => hash("sha256", key, "buffer")
