import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { AppConfig } from "../../../config/Config.ts"
import { sessionDays } from "../../../domain/limits/SignInLimits.ts"
import { problem } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"

/** The parts of a request that are needed to check its cookie. */
export interface CookieRequest {
  readonly method: string
  readonly headers: HeaderValues
  readonly cookies: Readonly<Record<string, string | undefined>>
}

/** Reads session cookies and checks the origin of the requests that carry them. ADR 0172. */
export interface SessionCookies {
  /** The session token of the request, if it has one. */
  readonly tokenOf: (request: CookieRequest) => string | undefined
  readonly set: (token: string) => Effect.Effect<void, never, HttpServerRequest.HttpServerRequest>
  readonly clear: Effect.Effect<void, never, HttpServerRequest.HttpServerRequest>
  /** Fails with 1007 unless a page of the gateway's own origin sent the request. */
  readonly refuseForeign: (request: CookieRequest) => Effect.Effect<void, Problem>
  /** The same check for a request without a cookie. Programs, which send no origin, are allowed. */
  readonly refuseOtherPages: (request: CookieRequest) => Effect.Effect<void, Problem>
}

/** The `__Host-` prefix makes the browser refuse this cookie from other hosts and from unencrypted responses. */
export const secureName = "__Host-gateway_session"
export const plainName = "gateway_session"

export const makeSessionCookies = Effect.map(AppConfig, ({ baseUrl }): SessionCookies => {
  const { origin, protocol } = new URL(baseUrl)
  const isSecure = protocol === "https:"
  const name = isSecure ? secureName : plainName
  const options = { path: "/", httpOnly: true, sameSite: "strict", secure: isSecure } as const
  const isOwn = (given: string, host: string | undefined): boolean =>
    given === origin || (!isSecure && host !== undefined && URL.parse(given)?.host === host)
  const judge = (request: CookieRequest, mayBeSilent: boolean) => {
    const { headers, method } = request
    return isFromOwnPage(headers, method === "GET" || method === "HEAD", mayBeSilent, isOwn)
      ? Effect.void
      : foreign
  }
  const answerWith = (
    change: (
      response: HttpServerResponse.HttpServerResponse
    ) => HttpServerResponse.HttpServerResponse
  ) =>
    HttpEffect.appendPreResponseHandler((_request, response) => Effect.sync(() => change(response)))
  return {
    tokenOf: ({ cookies }) => cookies[name],
    set: (token) =>
      answerWith(
        HttpServerResponse.setCookieUnsafe(name, token, {
          ...options,
          maxAge: `${sessionDays} days`
        })
      ),
    clear: answerWith(HttpServerResponse.setCookieUnsafe(name, "", { ...options, maxAge: 0 })),
    refuseForeign: (request) => judge(request, false),
    refuseOtherPages: (request) => judge(request, true)
  }
})

const foreign = Effect.fail(
  problem(1007, "A request with a session cookie must come from a page of this gateway")
)

/**
 * Browsers send `Sec-Fetch-Site` to https and loopback addresses, and `Origin` with every write. A read may also come
 * from the address bar (`none`).
 */
const isFromOwnPage = (
  headers: HeaderValues,
  isRead: boolean,
  mayBeSilent: boolean,
  isOwn: (origin: string, host: string | undefined) => boolean
): boolean => {
  const site = headerText(headers, "sec-fetch-site")
  const origin = headerText(headers, "origin")
  if (site !== undefined && site !== "same-origin" && !(isRead && site === "none")) return false
  if (origin !== undefined && !isOwn(origin, headerText(headers, "host"))) return false
  return isRead || mayBeSilent || site !== undefined || origin !== undefined
}
