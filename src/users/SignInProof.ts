import { DateTime, Effect, Option } from "effect"
import { hash } from "node:crypto"
import type { UserId } from "../domain/Ids.ts"
import type { PasskeyAssertion } from "../domain/Passkey.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { SignInMethod } from "../domain/Session.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { ApiKeys, previousSecret } from "./ApiKeys.ts"
import { Passkeys } from "./Passkeys.ts"
import { Passwords } from "./Passwords.ts"
import { SessionStore } from "./SessionStore.ts"
import type { Owner, SessionKey, UserOwner } from "./SessionStore.ts"

type Failure = Problem | StoreUnavailable

/** The credential that is exchanged for a session. */
export type Credential =
  | { readonly _tag: "Password"; readonly email: string; readonly password: string }
  | { readonly _tag: "ApiKey"; readonly key: string }
  | { readonly _tag: "OperatorToken"; readonly token: string }
  /** The secret of a link, or the link's whole URL. */
  | { readonly _tag: "Link"; readonly link: string }
  | { readonly _tag: "Passkey"; readonly assertion: PasskeyAssertion }

/** The owner whom the credential proves. */
export interface Proof {
  readonly owner: Owner
  readonly method: SignInMethod
  /** The exchanged key and its secret, if the credential was a key. */
  readonly key: SessionKey | null
}

/** Verifies the credential and returns its owner. Fails with 1005, or with 1002 to 1004 for a key. */
export const makeProve = Effect.fnUntraced(function* (
  operator: Owner & { readonly _tag: "Operator" }
) {
  const store = yield* SessionStore
  const keys = yield* ApiKeys
  const passwords = yield* Passwords
  const passkeys = yield* Passkeys
  const secrets = yield* Secrets

  const byPassword = Effect.fnUntraced(function* (email: string, password: string) {
    const user = Option.getOrUndefined(yield* store.userByEmail(email))
    const stored = user?.passwordHash ?? null
    const verdict = yield* passwords.verify(Option.fromNullOr(stored), password)
    if (user === undefined || stored === null || !verdict.isRight) return yield* wrongPassword
    if (verdict.isOutdated) yield* store.rehash(user.id, stored, yield* passwords.hash(password))
    return { owner: ownerOf(user), method: "password", key: null } satisfies Proof
  })

  const byOperatorToken = Effect.fnUntraced(function* (token: string) {
    if (!secrets.isAdminToken(token)) return yield* wrongToken
    return { owner: operator, method: "admin_token", key: null } satisfies Proof
  })

  const byLink = Effect.fnUntraced(function* (link: string) {
    const secret = linkSecret.exec(link)?.[1]
    if (secret === undefined) return yield* wrongToken
    const owner = yield* store.takeLink(hashToken(secret), yield* DateTime.now)
    if (Option.isNone(owner)) return yield* wrongToken
    return { owner: owner.value, method: "link", key: null } satisfies Proof
  })

  const byApiKey = Effect.fnUntraced(function* (key: string) {
    if (!key.startsWith("sk-")) return yield* wrongToken
    const { apiKeyId, isPrevious, rotation, scopes, userId } = yield* keys.authenticate(key)
    if (isPrevious) return yield* previousSecret
    if (!scopes.includes("manage")) {
      return yield* problem(1004, "This API key lacks the scope manage")
    }
    const owner = yield* ownerWithId(store, userId)
    return { owner, method: "api_key", key: { id: apiKeyId, rotation } } satisfies Proof
  })

  return (credential: Credential): Effect.Effect<Proof, Failure> => {
    switch (credential._tag) {
      case "Password":
        return byPassword(credential.email, credential.password)
      case "ApiKey":
        return byApiKey(credential.key)
      case "OperatorToken":
        return byOperatorToken(credential.token)
      case "Link":
        return byLink(credential.link)
      case "Passkey":
        return Effect.map(passkeys.prove(credential.assertion), (owner) => ({
          owner,
          method: "passkey",
          key: null
        }))
    }
  }
})

/** The prefix of a link's secret. */
export const linkPrefix = "sil_"
/** Matches the secret alone or at the end of a link. */
const linkSecret = new RegExp(`(?:^|#token=)(${linkPrefix}[\\w-]+)$`, "u")

/** A plain hash is enough, because tokens have 256 random bits. */
export const hashToken = (token: string): Uint8Array => hash("sha256", token, "buffer")

/** The same for an unknown address, a wrong password and a disabled user, so that it reveals nothing. */
const wrongPassword = problem(1005, "The e-mail address or the password is wrong")
const wrongToken = problem(1005, "The token is unknown, was used or has expired")

export const ownerOf = ({
  epoch,
  id
}: {
  readonly epoch: number
  readonly id: UserId
}): UserOwner => ({
  _tag: "User",
  userId: id,
  epoch
})

/** Fails with 2005 if the user is disabled or does not exist. */
export const ownerWithId = (store: SessionStore["Service"], id: UserId) =>
  Effect.flatMap(store.userById(id), (user) =>
    Option.isNone(user)
      ? Effect.fail(problem(2005, `There is no user ${id} that may sign in`))
      : Effect.succeed(ownerOf(user.value))
  )
