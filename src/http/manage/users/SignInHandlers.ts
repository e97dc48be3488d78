import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AppConfig } from "../../../config/Config.ts"
import { invalid } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { AuditLog } from "../../../process/AuditLog.ts"
import { Sessions } from "../../../users/Sessions.ts"
import type { Credential } from "../../../users/Sessions.ts"
import { makeClientAddress } from "../../server/ClientAddress.ts"
import { makeSessionCookies } from "../../server/SessionCookies.ts"
import { liveVendors } from "../../server/VendorModes.ts"
import { Api } from "../Api.ts"
import { auditSignIn } from "../ManageAudit.ts"
import { showSession } from "./SessionsHandlers.ts"

/** Exchanges a password or a token for a session's cookie. */
export const layer = HttpApiBuilder.group(
  Api,
  "signIn",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* AuditLog
    const sessions = yield* Sessions
    const cookies = yield* makeSessionCookies
    const addressOf = yield* makeClientAddress
    const { serviceName, signIn } = yield* AppConfig
    const { live } = yield* liveVendors
    const service = {
      name: serviceName,
      sandbox: live.size === 0,
      oidc: Option.isSome(signIn.oidc)
    }
    return handlers.handleAll({
      signIn: Effect.fnUntraced(function* ({ payload, request }) {
        const credential = yield* credentialOf(payload)
        const address = addressOf(request)
        const { row, token } = yield* sessions
          .signIn(credential, address)
          .pipe(auditSignIn(audit, "signIn", address))
        const before = cookies.tokenOf(request)
        // The browser forgets the session before: nobody else is to find its cookie
        if (before !== undefined) yield* sessions.end(before)
        yield* cookies.set(token)
        return showSession(row, row.id)
      }),
      getService: () => Effect.succeed(service)
    })
  })
)

interface Given {
  readonly email?: string
  readonly password?: string
  readonly token?: string
}

const credentialOf = (given: Given): Effect.Effect<Credential, Problem> => {
  const { email, password, token } = given
  if (token !== undefined && email === undefined && password === undefined) {
    return Effect.succeed({ _tag: "Token", token })
  }
  if (email !== undefined && password !== undefined && token === undefined) {
    return Effect.succeed({ _tag: "Password", email, password })
  }
  return Effect.fail(invalid([{ pointer: "#", detail: "Expected email and password, or token" }]))
}
