import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AppConfig } from "../../../config/Config.ts"
import { Api } from "../../../contract/Api.ts"
import type { PasskeyAssertion } from "../../../domain/Passkey.ts"
import { invalid } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { AuditLog } from "../../../process/audit/AuditLog.ts"
import { Passkeys } from "../../../users/Passkeys.ts"
import { Sessions } from "../../../users/Sessions.ts"
import type { Credential } from "../../../users/Sessions.ts"
import { makeSessionCookies } from "../../server/access/SessionCookies.ts"
import { makeClientAddress } from "../../server/listener/ClientAddress.ts"
import { makeVendorModes } from "../../server/VendorModes.ts"
import { auditSignIn } from "../ManageAudit.ts"
import { showSession } from "./SessionsHandlers.ts"

/** Exchanges a credential for a session cookie. */
export const layer = HttpApiBuilder.group(
  Api,
  "signIn",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* AuditLog
    const sessions = yield* Sessions
    const passkeys = yield* Passkeys
    const cookies = yield* makeSessionCookies
    const addressOf = yield* makeClientAddress
    const { serviceName, signIn, topUpUrl } = yield* AppConfig
    const vendorModes = yield* makeVendorModes
    return handlers.handleAll({
      signIn: Effect.fnUntraced(function* ({ payload, request }) {
        const credential = yield* credentialOf(payload)
        const address = addressOf(request)
        const { row, token } = yield* sessions
          .signIn(credential, address)
          .pipe(auditSignIn(audit, "signIn", address))
        const before = cookies.tokenOf(request)
        // The browser loses the previous session's cookie, so that session is ended
        if (before !== undefined) yield* sessions.end(before)
        yield* cookies.set(token)
        return showSession(row, row.id)
      }),
      getPasskeySignIn: () => passkeys.signInOptions,
      getService: () =>
        Effect.sync(() => ({
          name: serviceName,
          sandbox: vendorModes().live.size === 0,
          oidc: Option.isSome(signIn.oidc),
          passkeys: passkeys.isAvailable,
          top_up_url: Option.getOrNull(topUpUrl)
        }))
    })
  })
)

interface Given {
  readonly email?: string
  readonly password?: string
  readonly api_key?: string
  readonly operator_token?: string
  readonly link?: string
  readonly passkey?: PasskeyAssertion
}

const credentialOf = (given: Given): Effect.Effect<Credential, Problem> => {
  const { api_key: key, email, link, operator_token: token, passkey, password } = given
  const credentials: ReadonlyArray<Credential | undefined> = [
    email === undefined || password === undefined
      ? undefined
      : { _tag: "Password", email, password },
    key === undefined ? undefined : { _tag: "ApiKey", key },
    token === undefined ? undefined : { _tag: "OperatorToken", token },
    link === undefined ? undefined : { _tag: "Link", link },
    passkey === undefined ? undefined : { _tag: "Passkey", assertion: passkey }
  ]
  const [credential, ...more] = credentials.filter((it) => it !== undefined)
  const isHalf = (email === undefined) !== (password === undefined)
  return credential === undefined || more.length > 0 || isHalf
    ? Effect.fail(invalid([{ pointer: "#", detail: expected }]))
    : Effect.succeed(credential)
}

const expected = "Expected email and password, or one of api_key, operator_token, link and passkey"
