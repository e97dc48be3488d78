import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { AppConfig } from "../../../src/config/Config.ts"
import { makeSessionCookies } from "../../../src/http/server/access/SessionCookies.ts"
import { makeClientAddress } from "../../../src/http/server/listener/ClientAddress.ts"
import { browserWith, cookieOf, signIn } from "../../support/browser.ts"
import { adminToken, layerGateway } from "../../support/gateway.ts"
import { embeddedDatabase } from "../../support/stores.ts"

const gatewayAt = (BASE_URL: string, env: Readonly<Record<string, string>> = {}) =>
  layerGateway({ env: { BASE_URL, ...env } })

const configured = (env: Readonly<Record<string, string>>) => Effect.provide(AppConfig.layerOf(env))

const requestWith = (headers: Readonly<Record<string, string>>, method = "POST") =>
  HttpServerRequest.fromWeb(new Request("http://127.0.0.1:8080/", { method, headers }))

describe("the cookie of a session", () => {
  it.effect("is bound to one host and to https if the gateway is reached by https", () =>
    Effect.gen(function* () {
      const own = { "sec-fetch-site": "same-origin", origin: "https://gateway.example.com" }
      const response = yield* signIn({ operator_token: adminToken }, own)
      const [cookie = ""] = response.headers.getSetCookie()
      const [pair = "", ...attributes] = cookie.split("; ")
      assert.match(pair, /^__Host-gateway_session=[\w-]{43}$/u)
      assert.deepStrictEqual(attributes.toSorted(), [
        "HttpOnly",
        "Max-Age=604800",
        "Path=/",
        "SameSite=Strict",
        "Secure"
      ])
      // A sibling host can set the name without the prefix
      const tossed = browserWith(cookieOf(response).replace("__Host-", ""))
      assert.strictEqual(
        (yield* tossed.call("GET", "/manage/v1/session", undefined, own)).json.code,
        1001
      )
      // An unencrypted page on the same host
      const plain = { origin: "http://gateway.example.com", host: "gateway.example.com" }
      const refused = yield* browserWith(cookieOf(response)).call(
        "PATCH",
        "/manage/v1/wallet",
        { trigger_threshold: "5.00" },
        plain
      )
      assert.strictEqual(refused.json.code, 1007)
    }).pipe(Effect.provide(gatewayAt("https://gateway.example.com/ai")))
  )

  it.effect("of the operator ends with ADMIN_TOKEN", () =>
    Effect.gen(function* () {
      const database = yield* Layer.build(embeddedDatabase)
      const at = (token: string) =>
        layerGateway({ database: Layer.succeedContext(database), env: { ADMIN_TOKEN: token } })
      const listUsers = (cookie: string) => browserWith(cookie).call("GET", "/manage/v1/users")
      const cookie = yield* Effect.map(signIn({ operator_token: adminToken }), cookieOf).pipe(
        Effect.tap((it) =>
          Effect.map(listUsers(it), ({ status }) => assert.strictEqual(status, 200))
        ),
        Effect.provide(at(adminToken))
      )
      const changed = yield* Effect.provide(listUsers(cookie), at("another-token-of-operators"))
      assert.deepStrictEqual([changed.status, changed.json.code], [401, 1006])
      const same = yield* Effect.provide(listUsers(cookie), at(adminToken))
      assert.strictEqual(same.status, 200, "in another process with the same token")
    }).pipe(Effect.scoped)
  )

  it.effect("is accepted over http if the origin equals Host, as for localhost and 127.0.0.1", () =>
    Effect.gen(function* () {
      const { refuseForeign } = yield* makeSessionCookies
      const passes = (headers: Readonly<Record<string, string>>) =>
        Effect.map(
          Effect.exit(refuseForeign(requestWith(headers))),
          (exit) => exit._tag === "Success"
        )
      for (const [origin, host, expected] of [
        ["http://localhost:8080", "localhost:8080", true],
        ["http://127.0.0.1:8080", "127.0.0.1:8080", true],
        ["https://proxy.example.com", "proxy.example.com", true],
        ["http://127.0.0.1:9090", "127.0.0.1:8080", false],
        ["http://evil.example", "127.0.0.1:8080", false],
        ["null", "null", false],
        ["", "", false]
      ] as const) {
        assert.strictEqual(yield* passes({ origin, host }), expected, `${origin} to ${host}`)
      }
    }).pipe(configured({}))
  )
})

describe("the address of a client", () => {
  const addressOf = (TRUSTED_PROXIES: string, remote: string, forwarded?: string) =>
    Effect.map(makeClientAddress, (read) => {
      const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded }
      const request = requestWith(headers).modify({ remoteAddress: Option.some(remote) })
      return Option.getOrNull(read(request))
    }).pipe(configured({ TRUSTED_PROXIES }))

  it.effect("is the one of the connection, unless a trusted proxy names another", () =>
    Effect.gen(function* () {
      for (const [proxies, remote, forwarded, expected] of [
        ["", "203.0.113.9", "10.9.9.9", "203.0.113.9"],
        ["10.0.0.0/8", "203.0.113.9", "10.9.9.9", "203.0.113.9"],
        ["10.0.0.0/8", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
        ["10.0.0.0/8", "::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"],
        // The client's own values come first
        ["10.0.0.0/8", "10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"],
        ["10.0.0.0/8", "10.0.0.1", "203.0.113.9, 10.2.0.1", "203.0.113.9"],
        ["10.0.0.0/8", "10.0.0.1", "10.2.0.1", "10.2.0.1"],
        ["10.0.0.0/8", "10.0.0.1", "nonsense", "10.0.0.1"],
        ["10.0.0.0/8", "10.0.0.1", undefined, "10.0.0.1"],
        ["10.0.0.1, 2001:db8::/32", "2001:db8::1", "2001:db9::7", "2001:db9::7"]
      ] as const) {
        const said = JSON.stringify([proxies, remote, forwarded])
        assert.strictEqual(yield* addressOf(proxies, remote, forwarded), expected, said)
      }
    })
  )

  it.effect("a wrong TRUSTED_PROXIES stops the start", () =>
    Effect.gen(function* () {
      for (const wrong of ["proxy.example.com", "10.0.0.0/64", "10.0.0"]) {
        const { message } = yield* Effect.flip(addressOf(wrong, "10.0.0.1"))
        assert.match(message, /^TRUSTED_PROXIES: ".*" is not an address; /u)
      }
    })
  )
})
