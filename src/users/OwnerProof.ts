import { DateTime, Effect, Option } from "effect"
import { signInLinkMinutes } from "../domain/limits/SignInLimits.ts"
import { problem } from "../domain/Problem.ts"
import type { Session } from "../domain/Session.ts"
import { Passwords } from "./Passwords.ts"
import { RequestQuotas } from "./RequestQuotas.ts"
import { SessionStore } from "./SessionStore.ts"

/**
 * Requires the session's user to prove ownership of the account before changing how to sign in: by the current password
 * or, for a user without one, by a session that a link, a provider or a passkey has just opened. Counts as a sign-in
 * attempt from the address. Fails with 1004, 1005 or 1201.
 */
export const makeOwnerProof = Effect.gen(function* () {
  const store = yield* SessionStore
  const passwords = yield* Passwords
  const quotas = yield* RequestQuotas
  return Effect.fnUntraced(function* (
    session: Session,
    given: Option.Option<string>,
    address: Option.Option<string>
  ) {
    if (session.userId === null || session.method === "api_key") return yield* notOwn
    const found = yield* store.userById(session.userId)
    const user = yield* Effect.mapError(Effect.fromOption(found), () => changed)
    yield* quotas.takeSignIn(address, session.email ?? undefined)
    if (user.passwordHash !== null) {
      const password = Option.getOrElse(given, () => "")
      const { isRight } = yield* passwords.verify(Option.some(user.passwordHash), password)
      if (!isRight) return yield* wrongPassword
    } else if (!isFresh(session, yield* DateTime.now)) return yield* notFresh
    return user
  })
})

/** For a user without a password: the session is recent proof that the address or the passkey is theirs. */
const isFresh = ({ createdAt, method }: Session, now: DateTime.Utc): boolean =>
  (method === "link" || method === "oidc" || method === "passkey") &&
  DateTime.toEpochMillis(now) - DateTime.toEpochMillis(createdAt) < signInLinkMinutes * 60_000

const notOwn = problem(
  1004,
  "Only a user who signed in without an API key can set a password or a passkey"
)
const notFresh = problem(
  1004,
  "Sign in by a link, the provider or a passkey again: this user has no password to confirm with"
)
const wrongPassword = problem(1005, "The current password is wrong")

/** The problem if the user was disabled or the password changed by another request. */
export const changed = problem(1006, "The password or the user has changed: sign in again")
