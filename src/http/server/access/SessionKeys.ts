import { Effect, Option } from "effect"
import { problem } from "../../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../../domain/Problem.ts"
import type { MayStill } from "../../../tasks/TaskWatch.ts"
import { Sessions } from "../../../users/Sessions.ts"
import { makeSessionCookies } from "./SessionCookies.ts"
import type { CookieRequest } from "./SessionCookies.ts"

/** How a request with a session cookie may use models. */
export interface SessionUse {
  readonly keyHash: Uint8Array
  /** Rechecks access without counting as a use of the session, so that its idle time continues. */
  readonly mayStill: MayStill
}

/** `None` if the request has no cookie. */
export type SessionUseOf = (
  request: CookieRequest
) => Effect.Effect<Option.Option<SessionUse>, Problem | StoreUnavailable>

/**
 * Admits inference with a session, but only from the gateway's own pages. docs/reference/sessions.md#inference,
 * ADR 0172
 */
export const makeSessionUseOf = Effect.gen(function* () {
  const sessions = yield* Sessions
  const cookies = yield* makeSessionCookies
  const standing = (cookie: string, isUse: boolean) =>
    Effect.flatMap(sessions.find(cookie, isUse), (session) =>
      Effect.mapError(Effect.fromOption(session), () => sessionEnded)
    )
  const ofCookie = Effect.fnUntraced(function* (request: CookieRequest, cookie: string) {
    yield* cookies.refuseForeign(request)
    const keyHash = yield* sessions.keyHashOf(yield* standing(cookie, true))
    return Option.some({ keyHash, mayStill: standing(cookie, false) })
  })
  return (request: CookieRequest) => {
    const cookie = cookies.tokenOf(request)
    return cookie === undefined ? Effect.succeedNone : ofCookie(request, cookie)
  }
})

export const sessionEnded = problem(1006, "The session has ended: sign in again")
