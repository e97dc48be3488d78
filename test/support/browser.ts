import { Effect } from "effect"
import { baseUrl, callWith } from "./gateway.ts"
import type { HttpResult } from "./gateway.ts"

/** Headers that a browser adds to the requests of a page. */
export const ownPage = { "sec-fetch-site": "same-origin", origin: baseUrl }

export const cookieOf = (response: HttpResult): string =>
  response.headers.getSetCookie()[0]?.split(";", 1)[0] ?? ""

/** Signs in as a page of the gateway does. */
export const signIn = (body: unknown, headers: Readonly<Record<string, string>> = ownPage) =>
  callWith(undefined)("POST", "/manage/v1/session", body, headers)

/** A page of the gateway with a session. */
export const browserWith = (cookie: string) => ({
  cookie,
  call: (
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = ownPage
  ) => callWith(undefined)(method, path, body, { cookie, ...headers })
})

export const signedIn = (body: unknown) =>
  Effect.map(signIn(body), (response) => {
    if (response.status !== 200) throw new Error(response.text)
    return { ...browserWith(cookieOf(response)), json: response.json }
  })
