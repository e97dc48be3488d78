import { DateTime, Duration, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AppConfig } from "../../../config/Config.ts"
import { CurrentCaller } from "../../../contract/Access.ts"
import { Api } from "../../../contract/Api.ts"
import { PasskeyId, SessionId } from "../../../domain/Ids.ts"
import { sessionIdleHours } from "../../../domain/limits/SignInLimits.ts"
import { problem } from "../../../domain/Problem.ts"
import { Passkeys } from "../../../users/Passkeys.ts"
import type { PasskeyRow } from "../../../users/Passkeys.ts"
import { Sessions } from "../../../users/Sessions.ts"
import type { SessionRow } from "../../../users/Sessions.ts"
import { requireOperator, requireReader } from "../../server/access/Authentication.ts"
import { makeSessionCookies } from "../../server/access/SessionCookies.ts"
import { makeClientAddress } from "../../server/listener/ClientAddress.ts"
import { signInUrl } from "../../server/service/SignInPage.ts"
import { readPage, toPage } from "../Paging.ts"

/** The caller's sessions, and sign-in links. */
export const layer = HttpApiBuilder.group(
  Api,
  "sessions",
  Effect.fnUntraced(function* (handlers) {
    const sessions = yield* Sessions
    const passkeys = yield* Passkeys
    const cookies = yield* makeSessionCookies
    const addressOf = yield* makeClientAddress
    const { baseUrl } = yield* AppConfig
    return handlers.handleAll({
      getSession: () => Effect.map(current, (row) => showSession(row, row.id)),
      signOut: Effect.fnUntraced(function* () {
        const { id, userId } = yield* current
        yield* sessions.revoke(id, userId)
        yield* cookies.clear
      }),
      changePassword: Effect.fnUntraced(function* ({ payload, request }) {
        const { current_password: given, password: next } = payload
        const change = { current: Option.fromUndefinedOr(given), next }
        const session = yield* current
        const { row, token } = yield* sessions.changePassword(session, change, addressOf(request))
        yield* cookies.set(token)
        return showSession(row, row.id)
      }),
      getPasskeyCreation: () => Effect.flatMap(current, passkeys.creationOptions),
      createPasskey: Effect.fnUntraced(function* ({ payload, request }) {
        const { credential, current_password: given, name } = payload
        const asked = { name, credential, password: Option.fromUndefinedOr(given) }
        return showPasskey(yield* passkeys.create(yield* current, asked, addressOf(request)))
      }),
      listPasskeys: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, PasskeyId)
        const rows = yield* passkeys.list(userId, { before, limit: limit + 1 })
        return yield* toPage(rows, limit, (row) => row.id, showPasskey)
      }),
      deletePasskey: Effect.fnUntraced(function* ({ params }) {
        const caller = yield* CurrentCaller
        const owner = caller._tag === "User" ? caller.userId : undefined
        yield* passkeys.remove(params.id, owner, caller.session?.id)
      }),
      listSessions: Effect.fnUntraced(function* ({ query }) {
        const { _tag, session } = yield* CurrentCaller
        const isOwn = _tag === "Operator" && query.user_id === undefined
        const userId = isOwn ? null : yield* requireReader(query)
        const { before, limit } = readPage(query, SessionId)
        const rows = yield* sessions.list(userId, { before, limit: limit + 1 })
        return yield* toPage(
          rows,
          limit,
          (row) => row.id,
          (row) => showSession(row, session?.id)
        )
      }),
      revokeSession: Effect.fnUntraced(function* ({ params }) {
        const caller = yield* CurrentCaller
        yield* sessions.revoke(params.id, caller._tag === "User" ? caller.userId : undefined)
      }),
      createSignInLink: Effect.fnUntraced(function* ({ params }) {
        yield* requireOperator
        const { expiresAt, token } = yield* sessions.createLink(params.id)
        return { url: signInUrl(baseUrl, token), expires_at: expiresAt }
      })
    })
  })
)

const current = Effect.flatMap(CurrentCaller, ({ session }) =>
  session === undefined
    ? Effect.fail(problem(2005, "This request has no session: it was sent with a key or a token"))
    : Effect.succeed(session)
)

export const showSession = (row: SessionRow, currentId: SessionId | undefined) => ({
  id: row.id,
  user: row.userId === null ? null : { id: row.userId, email: row.email ?? "", name: row.name },
  role: row.userId === null ? ("operator" as const) : ("user" as const),
  method: row.method,
  current: row.id === currentId,
  address: row.address,
  created_at: row.createdAt,
  last_seen_at: row.lastSeenAt,
  expires_at: DateTime.min(
    row.expiresAt,
    DateTime.addDuration(row.lastSeenAt, Duration.hours(sessionIdleHours))
  )
})

const showPasskey = ({ createdAt, id, lastUsedAt, name }: PasskeyRow) => ({
  id,
  name,
  created_at: createdAt,
  last_used_at: lastUsedAt
})
