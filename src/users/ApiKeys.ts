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
import { AdmissionStore } from "./AdmissionStore.ts"
import type { Admission, AdmittedKey } from "./AdmissionStore.ts"
import { UserStore } from "./UserStore.ts"
import type { ApiKeyRow } from "./UserStore.ts"

export type { ApiKeyRow } from "./UserStore.ts"

/** Who calls: the user, through which key, allowed to do what. */
export interface Principal {
  readonly userId: UserId
  readonly apiKeyId: ApiKeyId
  readonly scopes: ReadonlyArray<Scope>
}

/** The request rate of a key after this request. Sent as `RateLimit-*`. */
export interface RateState {
  readonly limit: number
  readonly remaining: number
  /** Until the whole minute's limit is there again; on a refused request, until the next is taken. */
  readonly resetSeconds: number
  /** `false`: the limit is reached, answer 1201. */
  readonly admitted: boolean
}

export const KeyDigest = Schema.String.pipe(Schema.brand("KeyDigest"))
export type KeyDigest = typeof KeyDigest.Type

/** A request that may use a model. */
export interface Admitted {
  readonly principal: Principal
  /** `None`: `RATE_LIMIT_PER_MINUTE` is off. */
  readonly rate: Option.Option<RateState>
  /** The task that was asked for, if this user has it. */
  readonly task: Option.Option<TaskView>
}

/** A key at its birth, the one time that it is shown. */
export interface CreatedKey {
  readonly key: string
  readonly row: ApiKeyRow
}

/** API keys: made, found by their hash, revoked. Contract 3. */
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
     * scope. The task, when one is named, is found by the same statement.
     */
    readonly admit: (
      key: string,
      taskId: Option.Option<TaskId>
    ) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /**
     * As `admit`, but where no request rate is counted a key that was good before is not looked up
     * again: only for a caller who checks it once more in the statement that spends
     * (`Metering.open`). ADR 0072.
     */
    readonly recognize: (key: string) => Effect.Effect<Admitted, Problem | StoreUnavailable>
    /**
     * The same at once, by the digest of the key and for a caller who is no fiber: `undefined` when it
     * has to be looked up.
     */
    readonly recognized: (digest: KeyDigest) => Principal | undefined
    /** A recognized key turned out to be dead. */
    readonly forget: (key: string) => void
    readonly list: (
      userId: UserId,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<ApiKeyRow>, StoreUnavailable>
    /** Fails with 2005. Revoked at once. */
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
      const door = yield* AdmissionStore
      const { rateLimitPerMinute } = yield* AppConfig
      const admit = makeAdmit(store, door, rateLimitPerMinute)
      const remembered = new Map<KeyDigest, Principal>()
      const recognized = (digest: KeyDigest) =>
        rateLimitPerMinute > 0 ? undefined : remembered.get(digest)
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
          if (!isUsedLately(row, now)) yield* store.touchKey(row.id, now)
          return { userId: row.userId, apiKeyId: row.id, scopes: row.scopes }
        }),
        admit,
        recognize: (key) => {
          const digest = digestOf(key)
          const principal = recognized(digest)
          return principal === undefined
            ? Effect.tap(admit(key, Option.none()), ({ principal }) =>
                Effect.sync(() => remember(remembered, digest, principal))
              )
            : Effect.succeed({ principal, rate: Option.none(), task: Option.none() })
        },
        recognized,
        forget: (key) => {
          remembered.delete(digestOf(key))
        },
        list: store.listKeys,
        revoke: Effect.fn("ApiKeys.revoke")(function* (userId, id) {
          const revoked = yield* store.revokeKey(userId, id, yield* DateTime.now)
          if (Option.isNone(revoked)) return yield* problem(2005, `There is no API key ${id}`)
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

/** Every inference request comes here: no generators, one step after the statement. */
const makeAdmit = (
  store: UserStore["Service"],
  door: AdmissionStore["Service"],
  perMinute: number
) => {
  const letIn = (
    admission: Admission,
    now: DateTime.Utc
  ): Effect.Effect<Admitted, Problem | StoreUnavailable> => {
    const { key } = admission
    const invalid = faultOf(key, now)
    if (invalid !== undefined) return Effect.fail(invalid)
    if (!key.scopes.includes("inference")) return outOfScope
    const admitted = toAdmitted(admission, perMinute)
    return isUsedLately(key, now)
      ? Effect.succeed(admitted)
      : Effect.as(store.touchKey(key.id, now), admitted)
  }
  return (key: string, taskId: Option.Option<TaskId>) =>
    isWellFormed(key)
      ? Effect.flatMap(DateTime.now, (now) =>
          Effect.flatMap(door.admit({ keyHash: hashKey(key), perMinute, now, taskId }), (found) =>
            Option.isNone(found) ? unknown : letIn(found.value, now)
          )
        )
      : malformed
}

const toAdmitted = ({ key, rate, task }: Admission, limit: number): Admitted => ({
  principal: { userId: key.userId, apiKeyId: key.id, scopes: key.scopes },
  rate: Option.map(rate, (it) => ({ limit, ...it })),
  task
})

/** `last_used_at` is written at most once a minute, so that a busy key costs no write a request. */
const touchMillis = 60_000

const isUsedLately = ({ lastUsedAt }: AdmittedKey, now: DateTime.Utc): boolean =>
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

/** `sk-` + 40 random characters (238 bits) + 6 of checksum, so that a typing slip is told from an unknown key. */
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

/** The keys that one process remembers. */
const recognizedMax = 10_000

const remember = (
  known: Map<KeyDigest, Principal>,
  digest: KeyDigest,
  principal: Principal
): void => {
  if (known.size >= recognizedMax) known.clear()
  known.set(digest, principal)
}

/** Of a key, which is not kept in memory itself. */
export const digestOf = (key: string): KeyDigest => KeyDigest.make(hash("sha256", key, "base64"))

/** Keys have 238 random bits, so a plain hash is as safe as a slow one, and the look-up is by index. */
const hashKey = (key: string): Uint8Array => hash("sha256", key, "buffer")
