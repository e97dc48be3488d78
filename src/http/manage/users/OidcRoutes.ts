import { Effect } from "effect"
import { HttpEffect, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../../config/Config.ts"
import { beginOidc, finishOidc } from "../../../contract/ServiceApi.ts"
import { oidcTransactionMinutes } from "../../../domain/limits/SignInLimits.ts"
import { AuditLog } from "../../../process/audit/AuditLog.ts"
import { Oidc } from "../../../users/Oidc.ts"
import { Sessions } from "../../../users/Sessions.ts"
import { makeSessionCookies } from "../../server/access/SessionCookies.ts"
import { makeClientAddress } from "../../server/listener/ClientAddress.ts"
import { resource } from "../../server/Resource.ts"
import { signedInPage } from "../../server/service/SignInPage.ts"
import { auditSignIn } from "../ManageAudit.ts"

/** Sign-in with an OpenID provider. docs/reference/sessions.md#openid-connect */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const oidc = yield* Oidc
    const audit = yield* AuditLog
    const sessions = yield* Sessions
    const cookies = yield* makeSessionCookies
    const addressOf = yield* makeClientAddress
    const { baseUrl } = yield* AppConfig
    const isSecure = new URL(baseUrl).protocol === "https:"
    const name = isSecure ? "__Host-gateway_oidc" : "gateway_oidc"
    // `Lax`, because the browser comes back from the provider's page
    const options = { path: "/", httpOnly: true, sameSite: "lax", secure: isSecure } as const
    const page = signedInPage(baseUrl)
    const maxAge = `${oidcTransactionMinutes} minutes` as const

    const begin = Effect.gen(function* () {
      const { transaction, url } = yield* oidc.begin
      const response = HttpServerResponse.redirect(url, { headers: noStore })
      return HttpServerResponse.setCookieUnsafe(response, name, transaction, { ...options, maxAge })
    })

    const finish = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      // A transaction is used only once, whatever its outcome
      yield* HttpEffect.appendPreResponseHandler((_request, response) =>
        Effect.sync(() =>
          HttpServerResponse.setCookieUnsafe(response, name, "", { ...options, maxAge: 0 })
        )
      )
      const address = addressOf(request)
      yield* sessions.takeAttempt(address)
      const query = request.originalUrl.split("?")[1] ?? ""
      const identity = yield* oidc.finish(query, request.cookies[name])
      const { token } = yield* sessions
        .signInBySubject(identity.subject, identity.email, address)
        .pipe(auditSignIn(audit, "signInByOidc", address))
      const before = cookies.tokenOf(request)
      if (before !== undefined) yield* sessions.end(before)
      yield* cookies.set(token)
      return page
    })

    yield* router.addAll([
      ...resource(beginOidc.path, { GET: begin }),
      ...resource(finishOidc.path, { GET: finish })
    ])
  })
)

const noStore = { "cache-control": "no-store" }
