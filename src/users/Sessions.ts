import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { randomBytes } from "node:crypto"
import { AppConfig } from "../config/Config.ts"
import type { OidcSettings } from "../config/SignInSettings.ts"
import * as Credits from "../domain/Credits.ts"
import { foldAddress } from "../domain/EmailAddress.ts"
import { makeApiKeyId, makeSessionId } from "../domain/Ids.ts"
import type { SessionId, UserId } from "../domain/Ids.ts"
import {
  sessionDays,
  sessionIdleHours,
  sessionsPerOwnerMax,
  sessionTouchSeconds,
  signInLinkMinutes
} from "../domain/limits/SignInLimits.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { changed, makeOwnerProof } from "./OwnerProof.ts"
import { Passwords } from "./Passwords.ts"
import { RequestQuotas } from "./RequestQuotas.ts"
import { SessionStore } from "./SessionStore.ts"
import type { SessionRow, Standing } from "./SessionStore.ts"
import { hashToken, linkPrefix, makeProve, ownerOf, ownerWithId } from "./SignInProof.ts"
import type { Credential, Proof } from "./SignInProof.ts"

export type { SessionRow } from "./SessionStore.ts"
export type { Credential } from "./SignInProof.ts"

/** A new session. Only this response contains the token for the cookie. */
export interface OpenedSession {
  readonly token: string
  readonly row: SessionRow
}

export interface SignInLink {
  readonly token: string
  readonly expiresAt: DateTime.Utc
}

export interface PasswordChange {
  readonly current: Option.Option<string>
  readonly next: string
}

/** The user of a session that uses models, and the key exchanged for the session, if any. */
type KeyUser = Pick<SessionRow, "apiKeyId" | "userId">

type Failure = Problem | StoreUnavailable

/** Browser sessions of users and the operator. docs/reference/sessions.md */
export class Sessions extends Context.Service<
  Sessions,
  {
    /** Counts as a sign-in attempt from the address. Fails with 1005, with 1002 to 1004 for a key, or with 1201. */
    readonly signIn: (
      credential: Credential,
      address: Option.Option<string>
    ) => Effect.Effect<OpenedSession, Failure>
    /** Counts a sign-in attempt from the address. Fails with 1201. */
    readonly takeAttempt: (address: Option.Option<string>) => Effect.Effect<void, Failure>
    /** Opens a session for the user, or the operator, whose address the provider has verified. Fails with 1005. */
    readonly signInBySubject: (
      subject: string,
      email: string,
      address: Option.Option<string>
    ) => Effect.Effect<OpenedSession, Failure>
    /**
     * Sets the password of the session's user and ends all other sessions. The caller proves ownership by the current
     * password or, for a user without one, by a session that was just opened by a link or a provider. Counts as a
     * sign-in attempt from the address. Fails with 1004, 1005 or 1201.
     */
    readonly changePassword: (
      session: SessionRow,
      passwords: PasswordChange,
      address: Option.Option<string>
    ) => Effect.Effect<OpenedSession, Failure>
    /**
     * The session of a cookie; `None` if it has ended. Without `isUse`, the lookup does not count as use and the
     * session stays idle.
     */
    readonly find: (
      token: string,
      isUse?: boolean
    ) => Effect.Effect<Option.Option<SessionRow>, StoreUnavailable>
    /** Ends the session of a cookie; does nothing if it has already ended. */
    readonly end: (token: string) => Effect.Effect<void, StoreUnavailable>
    /** The sessions of a user, or of the operator if null. */
    readonly list: (
      userId: UserId | null,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<SessionRow>, StoreUnavailable>
    /** Fails with 2005. An `undefined` owner matches any. */
    readonly revoke: (
      id: SessionId,
      owner: UserId | null | undefined
    ) => Effect.Effect<void, Failure>
    /**
     * The hash of the key with which the session uses models: the key exchanged for the session or, without one, the
     * user's console key, created at first use. Fails with 1004 for the operator.
     */
    readonly keyHashOf: (session: KeyUser) => Effect.Effect<Uint8Array, Failure>
    /** Fails with 2005. */
    readonly createLink: (userId: UserId) => Effect.Effect<SignInLink, Failure>
    readonly deleteExpired: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const secrets = yield* Secrets
      const quotas = yield* RequestQuotas
      const { consoleCreditsPerMonth, signIn } = yield* AppConfig
      const operators = Option.map(signIn.oidc, (it) => it.operators)
      const mac = operatorMac(secrets, signIn.oidc)
      const operator = { _tag: "Operator", mac } as const
      const standing = Effect.map(DateTime.now, (now) => standingAt(now, mac))
      const prove = yield* makeProve(operator)
      const open = opener(store)
      const passwords = yield* Passwords
      const proveOwner = yield* makeOwnerProof

      return Sessions.of({
        signIn: Effect.fn("Sessions.signIn")(function* (credential, address) {
          const account = credential._tag === "Password" ? credential.email : undefined
          yield* quotas.takeSignIn(address, account)
          return yield* open(yield* prove(credential), address)
        }),
        takeAttempt: (address) => quotas.takeSignIn(address, undefined),
        signInBySubject: Effect.fn("Sessions.signInBySubject")(function* (subject, email, address) {
          if (Option.exists(operators, (them) => them.includes(foldAddress(email)))) {
            return yield* open({ owner: operator, method: "oidc", key: null }, address)
          }
          const user = yield* store.userBySubject(subject, email)
          if (Option.isNone(user)) return yield* nobody
          return yield* open({ owner: ownerOf(user.value), method: "oidc", key: null }, address)
        }),
        changePassword: Effect.fn("Sessions.changePassword")(function* (session, change, address) {
          const user = yield* proveOwner(session, change.current, address)
          const at = yield* standing
          const token = newToken()
          const to = yield* passwords.hash(change.next)
          const tokenHash = hashToken(token)
          const from = user.passwordHash
          if (!(yield* store.changePassword(session, { from, to, tokenHash })))
            return yield* changed
          const row = yield* store.find(tokenHash, at)
          return { token, row: yield* Effect.mapError(Effect.fromOption(row), () => changed) }
        }),
        find: Effect.fnUntraced(function* (token, isUse = true) {
          const at = yield* standing
          const row = yield* store.find(hashToken(token), at)
          if (isUse && Option.isSome(row) && isTouchDue(row.value, at.now)) {
            yield* store.touch(row.value.id, at.now)
          }
          return row
        }),
        end: (token) => store.end(hashToken(token)),
        list: (userId, page) => Effect.flatMap(standing, (at) => store.list(userId, page, at)),
        revoke: Effect.fn("Sessions.revoke")(function* (id, owner) {
          const removed = yield* store.remove(id, owner)
          if (!removed) return yield* problem(2005, `There is no session ${id}`)
        }),
        keyHashOf: keyHashOf(store, consoleCreditsPerMonth),
        createLink: Effect.fn("Sessions.createLink")(function* (userId) {
          const owner = yield* ownerWithId(store, userId)
          const token = `${linkPrefix}${newToken()}`
          const now = yield* DateTime.now
          const expiresAt = DateTime.addDuration(now, Duration.minutes(signInLinkMinutes))
          yield* store.createLink(hashToken(token), owner, expiresAt)
          return { token, expiresAt }
        }),
        deleteExpired: Effect.flatMap(standing, store.deleteExpired)
      })
    })
  )
}

/** Changes when any credential of the operator changes, which ends the operator's sessions. */
const operatorMac = (secrets: Secrets["Service"], oidc: Option.Option<OidcSettings>): string => {
  const byOidc = Option.match(oidc, {
    onNone: () => [],
    onSome: ({ issuer, operators }) => [issuer.href, ...operators]
  })
  return secrets.mac("operator's sessions", [secrets.adminTokenMac, ...byOidc].join("\n"))
}

const standingAt = (now: DateTime.Utc, operatorMac: string): Standing => ({
  now,
  idleSince: DateTime.subtractDuration(now, Duration.hours(sessionIdleHours)),
  operatorMac
})

const isTouchDue = ({ lastSeenAt }: SessionRow, now: DateTime.Utc): boolean =>
  DateTime.toEpochMillis(now) - DateTime.toEpochMillis(lastSeenAt) >= sessionTouchSeconds * 1000

/** 256 random bits. */
const newToken = (): string => randomBytes(32).toString("base64url")

const nobody = problem(1005, "There is no user for this identity: ask the operator")

/** Always generates a new token: a cookie that the browser sent is never reused (session fixation). */
const opener = (store: SessionStore["Service"]) =>
  Effect.fnUntraced(function* (proof: Proof, address: Option.Option<string>) {
    const now = yield* DateTime.now
    const token = newToken()
    const session = {
      ...proof,
      id: makeSessionId(DateTime.toEpochMillis(now)),
      tokenHash: hashToken(token),
      address: Option.getOrNull(address),
      now,
      expiresAt: DateTime.addDuration(now, Duration.days(sessionDays))
    }
    yield* store.create(session, sessionsPerOwnerMax)
    const at = standingAt(now, proof.owner._tag === "Operator" ? proof.owner.mac : "")
    const row = yield* store.find(session.tokenHash, at)
    // The key, the password or the user was removed in the meantime
    if (Option.isNone(row)) return yield* problem(1006, "The session has ended")
    return { token, row: row.value }
  })

const keyHashOf = (store: SessionStore["Service"], creditsPerMonth: number) => {
  const budget = BigInt(creditsPerMonth) * Credits.microPerCredit
  return Effect.fnUntraced(function* ({ apiKeyId, userId }: KeyUser) {
    if (userId === null) {
      return yield* problem(1004, "The operator has no wallet: sign in as a user")
    }
    const now = yield* DateTime.now
    const found = yield* apiKeyId === null
      ? store.consoleKeyHash({
          id: makeApiKeyId(DateTime.toEpochMillis(now)),
          userId,
          // Random rather than the hash of a text, so no text authenticates as this key
          keyHash: randomBytes(32),
          monthly: budget === 0n ? null : Credits.make(budget),
          now
        })
      : store.keyHash(apiKeyId)
    return yield* Effect.mapError(Effect.fromOption(found), () =>
      problem(1006, "The session has ended: sign in again")
    )
  })
}
