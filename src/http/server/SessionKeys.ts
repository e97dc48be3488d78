import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Sessions } from "../../users/Sessions.ts"
import { makeSessionCookies } from "./SessionCookies.ts"

type Request = HttpServerRequest.HttpServerRequest

/** The hash of the key by which a request with a session's cookie uses models; `None` without a cookie. */
export type KeyHashOf = (
  request: Request
) => Effect.Effect<Option.Option<Uint8Array>, Problem | StoreUnavailable>

/** Inference by session, of own pages only. docs/reference/sessions.md#inference, ADR 0175 */
export const makeKeyHashOf = Effect.gen(function* () {
  const sessions = yield* Sessions
  const cookies = yield* makeSessionCookies
  const ofCookie = Effect.fnUntraced(function* (request: Request, cookie: string) {
    yield* cookies.refuseForeign(request)
    const session = yield* sessions.find(cookie)
    if (Option.isNone(session)) return yield* problem(1006, "The session has ended: sign in again")
    return Option.some(yield* sessions.keyHashOf(session.value))
  })
  return (request: Request) => {
    const cookie = cookies.tokenOf(request)
    return cookie === undefined ? Effect.succeedNone : ofCookie(request, cookie)
  }
})
