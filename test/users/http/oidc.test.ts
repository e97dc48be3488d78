import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AppConfig } from "../../../src/config/Config.ts"
import { browserWith, cookieOf } from "../../support/browser.ts"
import { baseUrl, callWith, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import { localServer } from "../../support/localServer.ts"
import { startOidcProvider } from "../../support/oidcProvider.ts"
import type { Person } from "../../support/oidcProvider.ts"

/** Against `oidc-provider`, over loopback. docs/reference/sessions.md#openid-connect */

const begin = "/manage/v1/session/oidc"
const callback = `${begin}/callback`

class Provider extends Context.Service<Provider, Awaited<ReturnType<typeof startOidcProvider>>>()(
  "test/Provider"
) {}

const gateway = (
  inIdToken: boolean,
  env: Readonly<Record<string, string>> = {},
  hasForeignKeys = false
) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const provider = yield* Effect.acquireRelease(
        Effect.promise(() =>
          startOidcProvider({ redirectUri: `${baseUrl}${callback}`, inIdToken, hasForeignKeys })
        ),
        ({ stop }) => Effect.promise(stop)
      )
      return layerGateway({
        env: {
          OIDC_ISSUER: provider.issuer,
          OIDC_CLIENT_ID: "gateway",
          OIDC_CLIENT_SECRET: "the secret of the gateway",
          OIDC_OPERATORS: "Chief@example.com, kim@example.com",
          ...env
        }
      }).pipe(Layer.merge(Layer.succeed(Provider, provider)))
    })
  )

const nobody = callWith(undefined)

/** Acts as a browser: goes to the provider, which knows the person, and back to the callback URL. */
const leave = Effect.fnUntraced(function* (person: Person) {
  const provider = yield* Provider
  provider.be(person)
  const begun = yield* nobody("GET", begin)
  assert.strictEqual(begun.status, 302, begun.text)
  const [cookie = ""] = begun.headers.getSetCookie()
  assert.match(cookie, /^gateway_oidc=[\w-]+; .*HttpOnly.*SameSite=Lax/u)
  const to = new URL(begun.headers.get("location")!)
  assert.strictEqual(to.searchParams.get("code_challenge_method"), "S256")
  for (const secret of ["nonce", "state"]) assert.isAtLeast(to.searchParams.get(secret)!.length, 40)
  const back = yield* Effect.promise(() => provider.walk(to.href))
  assert.strictEqual(back.origin + back.pathname, `${baseUrl}${callback}`)
  return { path: back.pathname + back.search, cookie: cookieOf(begun) }
})

const come = ({ cookie, path }: { readonly cookie: string; readonly path: string }) =>
  // The browser comes from the provider's page
  nobody("GET", path, undefined, { cookie, "sec-fetch-site": "cross-site" })

const signInAs = (person: Person) => Effect.flatMap(leave(person), come)

const sessionOf = (response: Effect.Success<ReturnType<typeof come>>) =>
  response.headers.getSetCookie().find((it) => it.startsWith("gateway_session="))

const assertRefused = (response: Effect.Success<ReturnType<typeof come>>, code = 1005) => {
  assert.strictEqual(response.json?.code, code, response.text)
  assert.isUndefined(sessionOf(response))
}

for (const inIdToken of [true, false]) {
  layer(gateway(inIdToken), { timeout: "60 seconds", excludeTestServices: false })(
    `sign-in by OIDC, claims in ${inIdToken ? "the ID token" : "userinfo"}`,
    (it) => {
      it.effect("a verified address of a user opens a session of that user", () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const email = `oidc-${inIdToken}@example.com`
          yield* operator("PATCH", `/manage/v1/users/${user.id}`, { email })
          const response = yield* signInAs({
            sub: "u1",
            email: email.toUpperCase(),
            email_verified: true
          })
          assert.strictEqual(response.status, 200, response.text)
          // One of our pages redirects, because a redirect from another site would lose the cookie
          assert.include(response.text, '<meta http-equiv="refresh" content="0;url=/console">')
          assert.match(sessionOf(response)!, /; HttpOnly; SameSite=Strict$|SameSite=Strict/u)
          const cookie = sessionOf(response)!.split(";", 1)[0]!
          const shown = yield* browserWith(cookie).call("GET", "/manage/v1/session")
          assert.deepInclude(shown.json, { role: "user", method: "oidc" })
          assert.strictEqual(shown.json.user.id, user.id)
          // From now on the address belongs to this subject
          assertRefused(yield* signInAs({ sub: "u2", email, email_verified: true }))
          const renamed = yield* signInAs({
            sub: "u1",
            email: "new@example.com",
            email_verified: true
          })
          assert.strictEqual(renamed.status, 200)
          yield* operator("PATCH", `/manage/v1/users/${user.id}`, { disabled: true })
          assertRefused(yield* signInAs({ sub: "u1", email, email_verified: true }))
        })
      )

      it.effect("a sign-in leaves one entry of the audit log, a refusal none", () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const email = `audited-${inIdToken}@example.com`
          yield* operator("PATCH", `/manage/v1/users/${user.id}`, { email })
          const entries = Effect.map(
            operator("GET", "/manage/v1/audit-log?type=signInByOidc&limit=100"),
            ({ json }) => json.data
          )
          const before = yield* entries
          const sub = `audited-${inIdToken}`
          assertRefused(yield* signInAs({ sub, email, email_verified: false }))
          assert.deepStrictEqual(yield* entries, before)
          yield* TestClock.adjust("1 second")
          const response = yield* signInAs({ sub, email, email_verified: true })
          const cookie = sessionOf(response)!.split(";", 1)[0]!
          const { json } = yield* browserWith(cookie).call("GET", "/manage/v1/session")
          const [entry, ...rest] = yield* entries
          assert.deepStrictEqual(rest, before)
          assert.deepInclude(entry, {
            type: "signInByOidc",
            user_id: user.id,
            resource_id: json.id,
            changes: {},
            trace_id: response.headers.get("traceparent")!.slice(3, 35)
          })
          assert.deepInclude(entry.actor, { type: "session", id: json.id, user_id: user.id })
          assert.notInclude(JSON.stringify(entry), email)
          // Also ends the operator's session
          yield* TestClock.adjust("1 second")
          yield* signInAs({ sub: "c", email: "chief@example.com", email_verified: true })
          const [chief] = yield* entries
          assert.deepInclude(chief, { type: "signInByOidc", user_id: null })
          assert.deepInclude(chief.actor, { type: "session", user_id: null })
        })
      )

      it.effect(
        "an operator's address opens the operator's session; other addresses open nothing",
        () =>
          Effect.gen(function* () {
            const chief = yield* signInAs({
              sub: "c",
              email: "chief@example.com",
              email_verified: true
            })
            const cookie = sessionOf(chief)!.split(";", 1)[0]!
            const shown = yield* browserWith(cookie).call("GET", "/manage/v1/session")
            assert.deepInclude(shown.json, { role: "operator", user: null })
            assertRefused(
              yield* signInAs({ sub: "x", email: "chief@example.com", email_verified: false })
            )
            assertRefused(yield* signInAs({ sub: "x", email: "chief@example.com" }))
            // Another mailbox, whose first letter is the sign of the kelvin
            const kelvin = "\u212Aim@example.com"
            assertRefused(yield* signInAs({ sub: "x", email: kelvin, email_verified: true }))
            assertRefused(yield* signInAs({ sub: "x" }))
            assertRefused(
              yield* signInAs({ sub: "x", email: "n@example.com", email_verified: true })
            )
          })
      )
    }
  )
}

layer(gateway(true), { timeout: "60 seconds" })("a hostile callback", (it) => {
  const chief = { sub: "c", email: "chief@example.com", email_verified: true }

  it.effect("is refused without this browser's transaction, and each transaction works once", () =>
    Effect.gen(function* () {
      const mine = yield* leave(chief)
      const other = yield* leave(chief)
      assertRefused(yield* come({ ...mine, cookie: "" }))
      assertRefused(yield* come({ ...mine, cookie: "gateway_oidc=AAAA" }))
      assertRefused(yield* come({ ...mine, cookie: other.cookie }))
      const path = (change: (query: URLSearchParams) => void) => {
        const url = new URL(mine.path, baseUrl)
        change(url.searchParams)
        return url.pathname + url.search
      }
      for (const changed of [
        path((query) => query.delete("state")),
        path((query) => query.set("state", "x")),
        path((query) => query.delete("code")),
        path((query) => query.set("iss", "https://evil.example")),
        path((query) => query.set("error", "access_denied"))
      ]) {
        assertRefused(yield* come({ ...mine, path: changed }))
      }
      const used = yield* come(other)
      assert.strictEqual(used.status, 200, used.text)
      const cleared = used.headers.getSetCookie().find((it) => it.startsWith("gateway_oidc="))
      assert.match(cleared!, /^gateway_oidc=; Max-Age=0; /u)
      assertRefused(yield* come(other))
      const late = yield* leave(chief)
      yield* TestClock.adjust("10 minutes")
      assertRefused(yield* come(late))
    })
  )

  it.effect("attempts are limited by address", () =>
    Effect.gen(function* () {
      const tries = Effect.repeat(nobody("GET", `${callback}?code=x&state=y`), {
        until: ({ status }) => status === 429,
        times: 70
      })
      assert.strictEqual((yield* tries).json.code, 1201)
    })
  )
})

layer(gateway(true, {}, true), { timeout: "60 seconds", excludeTestServices: false })(
  "sign-in by OIDC, an ID token that none of the provider's published keys has signed",
  (it) => {
    it.effect("opens no session, of a user or of the operator", () =>
      Effect.gen(function* () {
        for (const email of ["signed@example.com", "chief@example.com"]) {
          const user = yield* makeUser()
          yield* operator("PATCH", `/manage/v1/users/${user.id}`, { email })
          assertRefused(yield* signInAs({ sub: email, email, email_verified: true }))
        }
      })
    )
  }
)

describe("OIDC settings", () => {
  it.effect(
    "without OIDC_ISSUER the route does not exist, and a wrong method is refused as usual",
    () =>
      Effect.gen(function* () {
        assert.deepInclude((yield* nobody("GET", begin)).json, { code: 2006, status: 404 })
        assert.strictEqual((yield* nobody("POST", begin)).json.code, 2007)
      }).pipe(Effect.provide(layerGateway()))
  )

  it.effect("a provider that does not respond is 502, and is asked by one request at a time", () =>
    Effect.gen(function* () {
      let asked = 0
      const issuer = yield* localServer((_request, response) => {
        asked += 1
        setTimeout(() => response.writeHead(503).end(), 200)
      })
      const env = { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: "x" }
      yield* Effect.gen(function* () {
        const begins = Array.from({ length: 20 }, () => nobody("GET", begin))
        for (const away of yield* Effect.all(begins, { concurrency: "unbounded" })) {
          assert.deepInclude(away.json, { code: 5002, status: 502 })
        }
        assert.strictEqual(asked, 1)
        yield* nobody("GET", begin)
        assert.strictEqual(asked, 2, "and again")
      }).pipe(Effect.provide(layerGateway({ env })))
    }).pipe(Effect.scoped)
  )

  it.effect("a wrong or incomplete set of variables stops the start", () =>
    Effect.gen(function* () {
      for (const [env, fault] of [
        [
          { OIDC_ISSUER: "http://id.example.com", OIDC_CLIENT_ID: "x" },
          /^OIDC_ISSUER: is not https;/u
        ],
        [
          { OIDC_ISSUER: "https://id.example.com/?tenant=a", OIDC_CLIENT_ID: "x" },
          /^OIDC_ISSUER: has a query, a fragment or credentials;/u
        ],
        [
          { OIDC_ISSUER: "https://id.example.com", OIDC_CLIENT_ID: "x", OIDC_OPERATORS: "ada" },
          /^OIDC_OPERATORS: "ada" is not an e-mail address;/u
        ],
        [{ OIDC_ISSUER: "https://id.example.com" }, /^OIDC_CLIENT_ID: is required/u],
        [{ OIDC_CLIENT_ID: "x" }, /^OIDC_ISSUER: is required/u],
        [{ OIDC_OPERATORS: "a@example.com" }, /^OIDC_ISSUER: is required/u],
        [{ OIDC_CLIENT_SECRET: "secret" }, /^OIDC_ISSUER: is required/u],
        [{ OIDC_TOKEN_SCOPES: "inference" }, /^OIDC_ISSUER: is required/u],
        [
          {
            OIDC_ISSUER: "https://id.example.com",
            OIDC_CLIENT_ID: "x",
            OIDC_TOKEN_SCOPES: "inference, admin"
          },
          /^OIDC_TOKEN_SCOPES: "admin" is not a scope; set some of inference, manage/u
        ]
      ] as const) {
        const { message } = yield* Effect.flip(Effect.provide(AppConfig, AppConfig.layerOf(env)))
        assert.match(message, fault)
      }
    })
  )
})
