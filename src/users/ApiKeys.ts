import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import type { Duration } from "effect"
import { AppConfig } from "../config/Config.ts"
import { Batcher } from "../db/Batcher.ts"
import type { TaskView } from "../db/TaskRow.ts"
import { makeApiKeyId } from "../domain/Ids.ts"
import type { ApiKeyId, TaskId, UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { problem, Problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { Scope } from "../domain/Scope.ts"
import { Hints } from "../process/signals/Hints.ts"
import { AdmissionStore, hasRate } from "./AdmissionStore.ts"
import type { Admission, AdmissionRequest, AdmittedKey, Rate } from "./AdmissionStore.ts"
import type { ApiKeyRow, KeyChange, KeyDetails, KeyLimits } from "./ApiKeyStore.ts"
import { keyChanges } from "./KeyChanges.ts"
import type { RotatedKey } from "./KeyChanges.ts"
import { digestOf, generateKey, hashKey, isWellFormed, previewOf } from "./KeyText.ts"
import type { KeyDigest } from "./KeyText.ts"
import { KnownKeys, remember } from "./KnownKeys.ts"
import type { KeyOwners } from "./KnownKeys.ts"
import { UserStore } from "./UserStore.ts"

export type { Rate } from "./AdmissionStore.ts"
export type { ApiKeyRow, KeyChange, KeyDetails, KeyLimits } from "./ApiKeyStore.ts"
export { resetAlone } from "./KeyChanges.ts"
export type { RotatedKey } from "./KeyChanges.ts"

/** The caller: a user, the API key and its scopes. */
export interface Principal {
  readonly userId: UserId
  readonly apiKeyId: ApiKeyId
  readonly scopes: ReadonlyArray<Scope>
  /** Identifies the key's secret: the number of rotations before it was generated. ADR 0190. */
  readonly rotation: number
  /** Limits that are checked on each request. A key with such limits is never cached. */
  readonly limits?: {
    /** `null`: all models are allowed. */
    readonly models: ReadonlyArray<string> | null
  }
}

/** A caller that authenticates to the management API with a key. */
export interface KeyHolder extends Principal {
  /** Whether the key has limits. Such a key may not change other keys. */
  readonly isLimited: boolean
  /** Whether the secret was replaced and is only valid for its grace period. Such a secret may not change keys. */
  readonly isPrevious: boolean
}

/** Whether the key allows a model under at least one of these names. */
export const allowsModel = ({ limits }: Principal, names: ReadonlyArray<string>): boolean => {
  const models = limits?.models ?? null
  return models === null || names.some((name) => models.includes(name))
}

export const modelNotAllowed = (model: string): Problem =>
  problem(1004, `This API key does not allow the model ${model.slice(0, 100)}`)

/** An admitted inference request. */
export interface Admitted {
  readonly principal: Principal
  /** `None` if there is no limit. Sent as `RateLimit-*`. If it refuses the request, the problem has code 1201. */
  readonly rate: Option.Option<Rate>
  /** The task that the request names, if it belongs to this user. */
  readonly task: Option.Option<TaskView>
}

/** A new key. Only this response contains the key itself. */
export interface CreatedKey {
  readonly key: string
  readonly row: ApiKeyRow
}

/** Creates, authenticates, changes and revokes API keys. docs/reference/keys-and-limits.md#api-keys */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    /** Creates a key with its limits in one transaction. */
    readonly create: (request: {
      readonly userId: UserId
      readonly name: string
      readonly scopes: ReadonlyArray<Scope>
      readonly expiresAt: Option.Option<DateTime.Utc>
      readonly limits?: KeyLimits
    }) => Effect.Effect<CreatedKey, StoreUnavailable>
    /** Fails with 1002 (malformed or unknown) or 1003 (expired or revoked). */
    readonly authenticate: (key: string) => Effect.Effect<KeyHolder, Problem | StoreUnavailable>
    /** The same for open responses, which check every second. Checks of the same key share a lookup. */
    readonly confirm: (key: string) => Effect.Effect<KeyHolder, Problem | StoreUnavailable>
    /**
     * Authenticates an inference request, counts it against the request rate and reads the task it names, in one
     * statement. Also fails with 1004 if the key lacks the scope.
     */
    readonly admit: (
      key: string,
      taskId: Option.Option<TaskId>
    ) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /** Like `admit`, for a caller that has only the hash of the key. */
    readonly admitHash: (
      keyHash: Uint8Array,
      taskId: Option.Option<TaskId>
    ) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /**
     * Like `admit`, but may use a cached result for a key without a request rate. Only for callers that check the key
     * again in the statement that holds money (`Metering.open`). ADR 0072.
     */
    readonly admitCached: (key: string) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /**
     * The cached principal of a key, synchronously, for callers outside a fiber. `undefined`: not cached, ask the
     * store.
     */
    readonly cachedPrincipal: (digest: KeyDigest) => Principal | undefined
    /** Removes an expired or revoked key from the cache. */
    readonly evict: (key: string) => void
    readonly list: (
      userId: UserId,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<KeyDetails>, StoreUnavailable>
    /** Finds a key of this user, or of any user for the operator. Fails with 2005. */
    readonly find: (
      userId: Option.Option<UserId>,
      id: ApiKeyId
    ) => Effect.Effect<KeyDetails, Problem | StoreUnavailable>
    /**
     * Changes a key and its limits. Fails with 2005, or with 2001 for a `reset` without a spend limit. Once it has
     * returned, no process admits a call under the previous limits.
     */
    readonly update: (
      userId: Option.Option<UserId>,
      id: ApiKeyId,
      change: KeyChange
    ) => Effect.Effect<KeyDetails, Problem | StoreUnavailable>
    /**
     * Gives the key a new secret; the old one stays valid for the given time. Fails with 2005, or with 1004 for a
     * console key. Once it has returned, no process admits a call with an older secret.
     */
    readonly rotate: (
      userId: Option.Option<UserId>,
      id: ApiKeyId,
      grace: Duration.Duration
    ) => Effect.Effect<RotatedKey, Problem | StoreUnavailable>
    /** Fails with 2005. Once it has returned, no process admits a call with this key. */
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
      const admitHash = makeAdmit(store, admissions, limits)
      const owners = yield* KnownKeys
      const admit = (key: string, taskId: Option.Option<TaskId>) =>
        isWellFormed(key)
          ? Effect.tap(admitHash(hashKey(key), taskId), ({ principal }) =>
              Effect.sync(() => owners.learn(key, principal.userId))
            )
          : malformed
      const cache = new Map<KeyDigest, Principal>()
      const hints = yield* Hints
      const forget = (id: string) => {
        for (const [digest, { apiKeyId }] of cache) if (apiKeyId === id) cache.delete(digest)
      }
      hints.subscribe("key", forget)
      const changed = (id: ApiKeyId) => {
        forget(id)
        hints.publishUnsafe("key", id)
      }
      const cachedPrincipal = (digest: KeyDigest) => (isLimited ? undefined : cache.get(digest))
      const authenticate = authenticateWith(store, owners)
      const confirmations = yield* makeConfirmations(authenticate)
      return ApiKeys.of({
        create: Effect.fn("ApiKeys.create")(function* (request) {
          const now = yield* DateTime.now
          const key = generateKey()
          const row = yield* store.createKey({
            id: makeApiKeyId(DateTime.toEpochMillis(now)),
            userId: request.userId,
            keyHash: hashKey(key),
            preview: previewOf(key),
            name: request.name,
            scopes: request.scopes,
            expiresAt: Option.getOrNull(request.expiresAt),
            ...(request.limits && { limits: request.limits }),
            now
          })
          return { key, row }
        }),
        authenticate,
        confirm: (key) => Effect.flatten(confirmations.call(key)),
        admit,
        admitHash,
        admitCached: (key) => {
          const digest = digestOf(key)
          const principal = cachedPrincipal(digest)
          return principal === undefined
            ? Effect.tap(admit(key, Option.none()), ({ principal }) =>
                Effect.sync(() => {
                  if (principal.limits === undefined) remember(cache, digest, principal)
                })
              )
            : Effect.succeed({ principal, rate: Option.none(), task: Option.none() })
        },
        cachedPrincipal,
        evict: (key) => {
          cache.delete(digestOf(key))
        },
        list: (userId, page) =>
          Effect.flatMap(DateTime.now, (now) => store.listKeys(userId, page, now)),
        ...keyChanges(store, changed)
      })
    })
  )
}

const authenticateWith = (store: UserStore["Service"], owners: KeyOwners) =>
  Effect.fnUntraced(function* (key: string) {
    if (!isWellFormed(key)) return yield* malformed
    const now = yield* DateTime.now
    const row = yield* known(yield* store.findKeyByHash(hashKey(key)))
    const { id: apiKeyId, isLimited, isPrevious, previousKeyUntil, scopes, userId } = row
    const previousUntil = isPrevious ? previousKeyUntil : undefined
    const invalid = faultOf({ ...row, previousUntil }, now)
    if (invalid !== undefined) return yield* invalid
    if (!isRecentlyUsed(row, now)) yield* store.touchKey(row.id, now)
    owners.learn(key, userId)
    const rotation = row.rotations - (isPrevious ? 1 : 0)
    return { userId, apiKeyId, scopes, rotation, isLimited, isPrevious }
  })

/**
 * Concurrent checks of a key share a lookup, so a hundred streams of one key cost one (`bench/hostile.ts`, event
 * streams).
 */
const makeConfirmations = (authenticate: ReturnType<typeof authenticateWith>) =>
  Batcher.make({
    run: Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
      const found = yield* Effect.forEach(
        new Set(keys),
        (key) => Effect.map(Effect.exit(authenticate(key)), (exit) => [key, exit] as const),
        { concurrency: 10 }
      )
      const exits = new Map(found)
      return keys.map((key) => exits.get(key) ?? unknown)
    }),
    itemsMax: 500,
    runsMax: 1
  })

/** Runs for every inference request, so it avoids generators and takes one step after the statement. */
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
  return (keyHash: Uint8Array, taskId: Option.Option<TaskId>) =>
    Effect.flatMap(DateTime.now, (now) =>
      Effect.flatMap(admissions.admit({ keyHash, ...limits, now, taskId }), (found) =>
        Option.isNone(found) ? unknown : check(found.value, now)
      )
    )
}

const toAdmitted = ({ key, rate, task }: Admission): Admitted => {
  const { allowedModels: models, previousUntil } = key
  const isOld = previousUntil !== undefined
  const rotation = key.rotations - (isOld ? 1 : 0)
  const principal = { userId: key.userId, apiKeyId: key.id, scopes: key.scopes, rotation }
  // An old secret is not cached, because it becomes invalid by itself; the same goes for keys with limits
  const isLimited = models !== null || hasRate(key) || isOld
  return { principal: isLimited ? { ...principal, limits: { models } } : principal, rate, task }
}

/** `last_used_at` is written at most once per minute, so that a busy key does not cost a write per request. */
const touchMillis = 60_000

const isRecentlyUsed = (
  { lastUsedAt }: Pick<AdmittedKey, "lastUsedAt">,
  now: DateTime.Utc
): boolean =>
  lastUsedAt !== null &&
  DateTime.toEpochMillis(lastUsedAt) >= DateTime.toEpochMillis(now) - touchMillis

/**
 * The problem returned when a replaced secret tries to change access.
 * docs/reference/keys-and-limits.md#who-changes-access
 */
export const previousSecret = new Problem({
  code: 1003,
  detail: "This secret of the API key was replaced by a rotation: use the new one for this request",
  forbidden: true
})

const malformed = problem(1002, "This API key is malformed: check that it was copied completely")

const unknown = problem(1002, "This API key is unknown")

const known = <A>(found: Option.Option<A>): Effect.Effect<A, Problem> =>
  Effect.mapError(Effect.fromOption(found), () => unknown)

const outOfScope = Effect.fail(problem(1004, "This API key lacks the scope inference"))

/** How a key ends, and the problem of a request with such a key. */
export const KeyEnding = Schema.Literals(["revoked", "disabled", "replaced", "expired"])
export const keyEnded: Record<typeof KeyEnding.Type, Problem> = {
  revoked: problem(1003, "This API key was revoked"),
  disabled: problem(1003, "The user of this API key is disabled"),
  replaced: problem(1003, "This API key was replaced by a rotation"),
  expired: problem(1003, "This API key has expired")
}

const faultOf = (
  row: Pick<AdmittedKey, "disabledAt" | "expiresAt" | "previousUntil" | "revokedAt">,
  now: DateTime.Utc
): Problem | undefined => {
  if (row.revokedAt !== null) return keyEnded.revoked
  if (row.disabledAt !== null) return keyEnded.disabled
  const { previousUntil } = row
  if (
    previousUntil !== undefined &&
    (previousUntil === null || DateTime.isLessThanOrEqualTo(previousUntil, now))
  ) {
    return keyEnded.replaced
  }
  return row.expiresAt !== null && DateTime.isLessThanOrEqualTo(row.expiresAt, now)
    ? keyEnded.expired
    : undefined
}
