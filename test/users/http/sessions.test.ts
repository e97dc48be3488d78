import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Sessions } from "../../../src/users/Sessions.ts"
import { browserWith, cookieOf, ownPage, signedIn, signIn } from "../../support/browser.ts"
import {
  adminToken,
  baseUrl,
  callWith,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/sessions.md, with the requests of browsers, of hostile pages and of hostile users. */

const manage = "/manage/v1"
const password = "correct horse battery"
const hour = 3_600_000
let people = 0

/** A user with a password and a key. */
const makePerson = Effect.gen(function* () {
  const user = yield* makeUser()
  people += 1
  const email = `person-${people}@example.com`
  const changed = yield* operator("PATCH", `${manage}/users/${user.id}`, { email, password })
  assert.strictEqual(changed.status, 200, changed.text)
  return { ...user, email, at: `${manage}/users/${user.id}`, secret: { email, password } }
})

const hook = { url: "https://hooks.example.com/a", events: ["task.succeeded"] }

describe("sessions", () => {
  layer(layerGateway({ database: stores.postgres }))((it) => {
    it.effect("a password, a key and the operator's token are exchanged for a cookie", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        for (const [body, role, method] of [
          [person.secret, "user", "password"],
          [{ ...person.secret, email: person.email.toUpperCase() }, "user", "password"],
          [{ api_key: person.key }, "user", "api_key"],
          [{ operator_token: adminToken }, "operator", "admin_token"]
        ] as const) {
          const response = yield* signIn(body)
          assert.strictEqual(response.status, 200, response.text)
          const user = role === "user" ? { id: person.id, email: person.email, name: null } : null
          assert.deepInclude(response.json, { user, role, method, current: true })
          assert.match(response.json.expires_at, /^\d{4}-\d\d-\d\dT/u)
          const [cookie = "", ...more] = response.headers.getSetCookie()
          assert.deepStrictEqual(more, [])
          assert.match(cookie, /^gateway_session=[\w-]{43}; /u)
          const attributes = cookie.split("; ").slice(1).toSorted()
          assert.deepStrictEqual(attributes, [
            "HttpOnly",
            "Max-Age=604800",
            "Path=/",
            "SameSite=Strict"
          ])
          const browser = browserWith(cookieOf(response))
          const shown = yield* browser.call("GET", `${manage}/session`)
          assert.deepStrictEqual([shown.status, shown.json], [200, response.json])
          const path = role === "user" ? "/wallet" : `/users/${person.id}`
          assert.strictEqual((yield* browser.call("GET", `${manage}${path}`)).status, 200)
        }
        const manages = yield* callWith(person.key)("POST", `${manage}/api-keys`, { name: "plain" })
        const refused = yield* signIn({ api_key: manages.json.key })
        assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
        assert.deepStrictEqual(refused.headers.getSetCookie(), [])
      })
    )

    it.effect("a user changes the password, which ends all other sessions", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const [browser, other] = [yield* signedIn(person.secret), yield* signedIn(person.secret)]
        const change = (body: unknown, by = browser) =>
          by.call("POST", `${manage}/session/password`, body)
        const next = "another horse"
        for (const [body, status, code] of [
          [{ current_password: "wrong password", password: next }, 401, 1005],
          [{ password: next }, 401, 1005],
          [{ current_password: password, password: "short" }, 400, 2001],
          [{ current_password: password }, 400, 2001]
        ] as const) {
          const { headers, json, status: found } = yield* change(body)
          assert.deepStrictEqual([found, json.code], [status, code], JSON.stringify(body))
          assert.deepStrictEqual(headers.getSetCookie(), [])
        }
        const changed = yield* change({ current_password: password, password: next })
        assert.strictEqual(changed.status, 200, changed.text)
        assert.deepInclude(changed.json, { id: browser.json.id, current: true })
        const again = browserWith(cookieOf(changed))
        assert.strictEqual((yield* again.call("GET", `${manage}/session`)).status, 200)
        for (const ended of [browser, other]) {
          const { json, status } = yield* ended.call("GET", `${manage}/session`)
          assert.deepStrictEqual([status, json.code], [401, 1006])
        }
        assert.strictEqual((yield* signIn(person.secret)).status, 401)
        assert.strictEqual((yield* signIn({ ...person.secret, password: next })).status, 200)
        // Neither the operator nor a key has a password
        for (const secret of [{ operator_token: adminToken }, { api_key: person.key }]) {
          const by = yield* signedIn(secret)
          const { json, status } = yield* change({ current_password: next, password }, by)
          assert.deepStrictEqual([status, json.code], [403, 1004], JSON.stringify(secret))
        }
        const { status } = yield* callWith(person.key)("POST", `${manage}/session/password`, {
          current_password: next,
          password
        })
        assert.strictEqual(status, 404)
      })
    )

    it.effect("a first password may be set right after a link, and not later", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const byLink = Effect.gen(function* () {
          const made = yield* operator("POST", `${manage}/users/${user.id}/sign-in-links`)
          return yield* signedIn({ link: made.json.url })
        })
        const late = yield* byLink
        yield* TestClock.adjust("10 minutes")
        const refused = yield* late.call("POST", `${manage}/session/password`, { password })
        assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
        const fresh = yield* byLink
        const { status } = yield* fresh.call("POST", `${manage}/session/password`, { password })
        assert.strictEqual(status, 200)
        assert.strictEqual((yield* late.call("GET", `${manage}/session`)).status, 401)
      })
    )

    it.effect("a refused sign-in reveals nothing about the account", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const without = yield* makeUser()
        yield* operator("PATCH", `${manage}/users/${without.id}`, { email: "without@example.com" })
        const disabled = yield* makePerson
        yield* operator("PATCH", disabled.at, { disabled: true })
        const answers = []
        for (const body of [
          { email: person.email, password: "something else" },
          { email: "nobody@example.com", password },
          { email: "without@example.com", password },
          { email: disabled.email, password }
        ]) {
          const { headers, json, status } = yield* signIn(body)
          assert.deepStrictEqual(headers.getSetCookie(), [])
          answers.push([status, json.code, json.detail])
        }
        const [first] = answers
        assert.deepStrictEqual(first?.slice(0, 2), [401, 1005])
        for (const answer of answers) assert.deepStrictEqual(answer, first)
        const link = `sil_${"a".repeat(43)}`
        for (const secret of ["", "x", "sil_", link, `x#token=${link}`, `${adminToken}x`, "sk-1"]) {
          for (const member of ["api_key", "operator_token", "link"]) {
            const { headers, status } = yield* signIn({ [member]: secret })
            assert.strictEqual(status, secret === "" ? 400 : 401, `${member} ${secret}`)
            assert.deepStrictEqual(headers.getSetCookie(), [])
          }
        }
        // A secret in the field of another kind is refused
        for (const body of [
          { link: person.key },
          { operator_token: person.key },
          { api_key: adminToken },
          { link: adminToken }
        ]) {
          const { json, status } = yield* signIn(body)
          assert.deepStrictEqual([status, json.code], [401, 1005], JSON.stringify(body))
        }
        for (const body of [
          {},
          { email: person.email },
          { email: person.email, api_key: person.key },
          { ...person.secret, api_key: person.key },
          { api_key: person.key, operator_token: adminToken },
          { token: person.key },
          { ...person.secret, remember: true }
        ]) {
          assert.strictEqual((yield* signIn(body)).json.code, 2001)
        }
      })
    )

    it.effect(
      "writes with a cookie come from a page of the gateway, reads from no other page",
      () =>
        Effect.gen(function* () {
          const person = yield* makePerson
          const { cookie } = yield* signedIn(person.secret)
          const browser = browserWith(cookie)
          const hostile: ReadonlyArray<Readonly<Record<string, string>>> = [
            {},
            { "sec-fetch-site": "cross-site" },
            { "sec-fetch-site": "same-site" },
            { "sec-fetch-site": "none" },
            { "sec-fetch-site": "cross-site", origin: baseUrl },
            { "sec-fetch-site": "same-origin", origin: "https://evil.example" },
            { origin: "https://evil.example" },
            { origin: "null" },
            { origin: "https://gateway.test" },
            { origin: "http://gateway.test:81" },
            { origin: "http://sub.gateway.test" },
            { origin: "http://gateway.test.evil.example" },
            { referer: `${baseUrl}/docs` }
          ]
          for (const headers of hostile) {
            for (const [method, path, body] of [
              ["POST", "/webhook-endpoints", hook],
              ["PATCH", "/wallet", { trigger_threshold: "5.00" }],
              ["DELETE", "/session", undefined]
            ] as const) {
              const refused = yield* browser.call(method, `${manage}${path}`, body, headers)
              const said = JSON.stringify({ method, path, headers })
              assert.deepStrictEqual([refused.status, refused.json.code], [403, 1007], said)
            }
          }
          for (const headers of hostile.filter((it) => "sec-fetch-site" in it || "origin" in it)) {
            if (headers["sec-fetch-site"] === "none") continue
            const read = yield* browser.call("GET", `${manage}/wallet`, undefined, headers)
            assert.strictEqual(read.json.code, 1007, JSON.stringify(headers))
          }
          for (const headers of [{}, { "sec-fetch-site": "none" }, ownPage]) {
            const read = yield* browser.call("GET", `${manage}/wallet`, undefined, headers)
            assert.strictEqual(read.status, 200)
          }
          for (const headers of [
            { "sec-fetch-site": "same-origin" },
            { origin: baseUrl },
            ownPage
          ]) {
            const made = yield* browser.call("POST", `${manage}/webhook-endpoints`, hook, headers)
            assert.strictEqual(made.status, 201, made.text)
          }
          // A key in the header needs no origin and takes precedence over a cookie
          const other = yield* makePerson
          const keyed = yield* callWith(other.key)("POST", `${manage}/webhook-endpoints`, hook, {
            cookie,
            origin: "https://evil.example"
          })
          assert.strictEqual(keyed.status, 201)
          const mine = yield* browser.call("GET", `${manage}/webhook-endpoints`)
          assert.strictEqual(mine.json.data.length, 3)
          const wrong = yield* browser.call("GET", `${manage}/wallet`, undefined, {
            ...ownPage,
            authorization: "Bearer sk-wrong"
          })
          assert.strictEqual(wrong.json.code, 1002)
        })
    )

    it.effect("neither another page nor a form can sign the browser in", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        for (const headers of [
          { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
          { origin: "https://evil.example" },
          { origin: "null" }
        ]) {
          const refused = yield* signIn(person.secret, headers)
          assert.deepStrictEqual([refused.status, refused.json.code], [403, 1007])
          assert.deepStrictEqual(refused.headers.getSetCookie(), [])
        }
        const form = yield* callWith(undefined)("POST", `${manage}/session`, person.secret, {
          ...ownPage,
          "content-type": "text/plain"
        })
        assert.deepStrictEqual([form.status, form.json.code], [415, 2003])
        // A program sends no origin
        assert.strictEqual((yield* signIn(person.secret, {})).status, 200)
        const large = yield* signIn({ link: "x".repeat(17 * 1024) })
        assert.strictEqual(large.json.code, 2004)
      })
    )

    it.effect(
      "each sign-in creates a new cookie and ends the previous session, against fixation",
      () =>
        Effect.gen(function* () {
          const person = yield* makePerson
          const planted = `gateway_session=${"A".repeat(43)}`
          const first = yield* signIn(person.secret, { ...ownPage, cookie: planted })
          assert.notStrictEqual(cookieOf(first), planted)
          assert.strictEqual(
            (yield* browserWith(planted).call("GET", `${manage}/session`)).json.code,
            1006
          )
          const before = browserWith(cookieOf(first))
          const attacker = yield* signIn(
            { api_key: person.key },
            { ...ownPage, cookie: before.cookie }
          )
          assert.strictEqual((yield* before.call("GET", `${manage}/session`)).json.code, 1006)
          // A repeat also creates a new session, because its response is never stored
          const keyed = { ...ownPage, "idempotency-key": "again" }
          const [one, two] = [
            yield* signIn(person.secret, keyed),
            yield* signIn(person.secret, keyed)
          ]
          assert.strictEqual(two.status, 200)
          assert.strictEqual(two.headers.get("idempotency-replayed"), null)
          const cookies = new Set([first, attacker, one, two].map(cookieOf))
          assert.strictEqual(cookies.size, 4)
        })
    )

    it.effect("the store contains no cookie, link or password in plain text", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const { cookie } = yield* signedIn(person.secret)
        const link = yield* operator("POST", `${person.at}/sign-in-links`)
        const sql = yield* SqlClient.SqlClient
        const rows = JSON.stringify([
          yield* sql`SELECT s::text FROM sessions s`,
          yield* sql`SELECT l::text FROM sign_in_links l`,
          yield* sql`SELECT u::text FROM users u WHERE id = ${person.id}`
        ])
        for (const secret of [cookie.split("=")[1]!, link.json.url.split("=")[1], password]) {
          assert.notInclude(rows, secret)
          assert.notInclude(rows, Buffer.from(secret).toString("hex"))
        }
        assert.include(rows, "$argon2id$v=19$m=19456,t=2,p=1$")
      })
    )

    it.effect("a session ends after 12 hours without use, and after 7 days at most", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const sql = yield* SqlClient.SqlClient
        /** The clock of a running gateway is too slow for days. */
        const age = (what: string, millis: number) =>
          sql`
            UPDATE sessions SET ${sql(what)} = ${sql(what)} - ${millis} * interval '1 ms'
            WHERE user_id = ${person.id}`
        const idle = yield* signedIn(person.secret)
        yield* age("last_seen_at", 12 * hour - 1)
        assert.strictEqual((yield* idle.call("GET", `${manage}/session`)).status, 200)
        // This use began another 12 hours
        yield* age("last_seen_at", 12 * hour - 1)
        assert.strictEqual((yield* idle.call("GET", `${manage}/session`)).status, 200)
        yield* age("last_seen_at", 12 * hour)
        const ended = yield* idle.call("GET", `${manage}/session`)
        assert.deepStrictEqual([ended.status, ended.json.code], [401, 1006])
        // The browser forgets the cookie
        assert.match(ended.headers.getSetCookie()[0]!, /^gateway_session=; Max-Age=0; /u)
        const used = yield* signedIn(person.secret)
        yield* age("expires_at", 7 * 24 * hour - 1)
        assert.strictEqual((yield* used.call("GET", `${manage}/session`)).status, 200)
        yield* age("expires_at", 1)
        assert.strictEqual((yield* used.call("GET", `${manage}/session`)).json.code, 1006)
        assert.strictEqual(
          (yield* operator("GET", `${manage}/sessions?user_id=${person.id}`)).json.data.length,
          0
        )
        yield* (yield* Sessions).deleteExpired
        const left = yield* sql`SELECT id FROM sessions WHERE user_id = ${person.id}`
        assert.deepStrictEqual(left, [])
      })
    )

    it.effect("a session ends with its key, its password or its user", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const bySecret = signedIn(person.secret)
        const newKey = (expires_at: string | null) =>
          callWith(person.key)("POST", `${manage}/api-keys`, {
            name: "k",
            scopes: ["manage"],
            expires_at
          })
        const isOpen = (browser: { readonly call: ReturnType<typeof browserWith>["call"] }) =>
          Effect.map(browser.call("GET", `${manage}/session`), ({ status }) => status === 200)
        const [revoked, kept] = [(yield* newKey(null)).json, (yield* newKey(null)).json]
        const byRevoked = yield* signedIn({ api_key: revoked.key })
        const byKept = yield* signedIn({ api_key: kept.key })
        yield* callWith(person.key)("DELETE", `${manage}/api-keys/${revoked.id}`)
        assert.deepStrictEqual([yield* isOpen(byRevoked), yield* isOpen(byKept)], [false, true])
        const now = yield* TestClock.adjust("1 second").pipe(
          Effect.andThen(Effect.clockWith((clock) => clock.currentTimeMillis))
        )
        const soon = yield* newKey(new Date(now + 60_000).toISOString())
        const byExpiring = yield* signedIn({ api_key: soon.json.key })
        assert.isTrue(yield* isOpen(byExpiring))
        assert.strictEqual(byExpiring.json.expires_at, soon.json.expires_at)
        const rotate = `${manage}/api-keys/${kept.id}/rotate`
        const replaced = yield* callWith(person.key)("POST", rotate, { grace_seconds: 30 })
        const { json: shown } = yield* byKept.call("GET", `${manage}/session`)
        assert.strictEqual(shown.expires_at, replaced.json.old_key_expires_at)
        yield* TestClock.adjust("1 minute")
        assert.isFalse(yield* isOpen(byKept))
        assert.isFalse(yield* isOpen(byExpiring))

        const before = yield* bySecret
        yield* operator("PATCH", person.at, { name: "Still me" })
        assert.isTrue(yield* isOpen(before))
        yield* operator("PATCH", person.at, { password })
        assert.isFalse(yield* isOpen(before), "the same password, set again")
        const again = yield* bySecret
        yield* operator("PATCH", person.at, { password: null })
        assert.isFalse(yield* isOpen(again), "no password any more")
        assert.strictEqual((yield* signIn(person.secret)).json.code, 1005)
        yield* operator("PATCH", person.at, { password })
        const last = yield* bySecret
        const disabled = yield* operator("PATCH", person.at, { disabled: true })
        assert.isTrue(disabled.json.disabled)
        assert.isFalse(yield* isOpen(last), "a disabled user")
        assert.strictEqual((yield* signIn({ api_key: replaced.json.key })).json.code, 1003)
        yield* operator("PATCH", person.at, { disabled: false })
        assert.isFalse(yield* isOpen(last), "enabled again: a new sign-in is needed")
        assert.isTrue(yield* isOpen(yield* bySecret))
      })
    )

    it.effect("sessions are listed and revoked by their user, and by the operator", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const stranger = yield* signedIn((yield* makePerson).secret)
        const first = yield* signedIn(person.secret)
        yield* TestClock.adjust("1 second")
        const second = yield* signedIn({ api_key: person.key })
        const list = yield* second.call("GET", `${manage}/sessions`)
        assert.deepStrictEqual(
          list.json.data.map((it: { id: string; current: boolean }) => [it.id, it.current]),
          [
            [second.json.id, true],
            [first.json.id, false]
          ]
        )
        const foreign = yield* stranger.call("DELETE", `${manage}/sessions/${first.json.id}`)
        assert.strictEqual(foreign.json.code, 2005)
        const other = yield* stranger.call("GET", `${manage}/sessions?user_id=${person.id}`)
        assert.strictEqual(other.json.code, 1004)
        assert.strictEqual(
          (yield* second.call("DELETE", `${manage}/sessions/${first.json.id}`)).status,
          204
        )
        assert.strictEqual((yield* first.call("GET", `${manage}/wallet`)).json.code, 1006)
        const seen = yield* operator("GET", `${manage}/sessions?user_id=${person.id}`)
        assert.deepStrictEqual(
          seen.json.data.map((it: { id: string }) => it.id),
          [second.json.id]
        )
        assert.strictEqual(
          (yield* operator("DELETE", `${manage}/sessions/${second.json.id}`)).status,
          204
        )
        assert.strictEqual((yield* second.call("GET", `${manage}/wallet`)).json.code, 1006)
        const leaving = yield* signedIn(person.secret)
        const left = yield* leaving.call("DELETE", `${manage}/session`)
        assert.strictEqual(left.status, 204)
        assert.match(left.headers.getSetCookie()[0]!, /^gateway_session=; Max-Age=0; /u)
        assert.strictEqual((yield* leaving.call("GET", `${manage}/session`)).json.code, 1006)
        // The operator's sessions belong to the operator
        const chief = yield* signedIn({ operator_token: adminToken })
        assert.notInclude((yield* stranger.call("GET", `${manage}/sessions`)).text, chief.json.id)
        assert.strictEqual(
          (yield* stranger.call("DELETE", `${manage}/sessions/${chief.json.id}`)).json.code,
          2005
        )
        assert.include((yield* chief.call("GET", `${manage}/sessions`)).text, chief.json.id)
      })
    )

    it.effect("only the newest 100 sessions of a user remain", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const first = yield* signedIn({ api_key: person.key })
        const sql = yield* SqlClient.SqlClient
        for (let n = 0; n < 100; n += 1) {
          yield* TestClock.adjust("10 millis")
          // Attempts per address are limited
          yield* sql`DELETE FROM request_buckets`
          yield* signedIn({ api_key: person.key })
        }
        const rows =
          yield* sql`SELECT count(*)::int AS n FROM sessions WHERE user_id = ${person.id}`
        assert.deepStrictEqual(rows, [{ n: 100 }])
        assert.strictEqual((yield* first.call("GET", `${manage}/session`)).json.code, 1006)
      })
    )

    it.effect("a one-time link signs in once, for ten minutes, in its fragment only", () =>
      Effect.gen(function* () {
        const person = yield* makePerson
        const link = operator("POST", `${person.at}/sign-in-links`)
        const tokenOf = (url: string) => new URL(url).hash.slice("#token=".length)
        const made = yield* link
        assert.strictEqual(made.status, 201, made.text)
        const url = new URL(made.json.url)
        assert.deepStrictEqual([url.origin, url.pathname, url.search], [baseUrl, "/sign-in", ""])
        const token = tokenOf(made.json.url)
        const tries = yield* Effect.all(
          Array.from({ length: 8 }, (_, n) => signIn({ link: n % 2 === 0 ? token : url.href })),
          { concurrency: "unbounded" }
        )
        const statuses = tries.map(({ status }) => status).toSorted()
        assert.deepStrictEqual(statuses, [200, ...Array.from({ length: 7 }, () => 401)])
        const won = tries.find(({ status }) => status === 200)!
        assert.deepInclude(won.json, { role: "user", method: "link" })
        assert.strictEqual(won.json.user.id, person.id)

        const late = tokenOf((yield* link).json.url)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual((yield* signIn({ link: late })).json.code, 1005)
        for (const change of [{ password }, { disabled: true }]) {
          const stale = tokenOf((yield* link).json.url)
          yield* operator("PATCH", person.at, change)
          assert.strictEqual((yield* signIn({ link: stale })).json.code, 1005)
        }
        const none = yield* link
        assert.strictEqual(none.json.code, 2005, "a disabled user")
        const user = yield* makePerson
        const refused = yield* user.call("POST", `${user.at}/sign-in-links`)
        assert.strictEqual(refused.json.code, 1004)
        const session = yield* signedIn(user.secret)
        assert.strictEqual(
          (yield* session.call("POST", `${user.at}/sign-in-links`)).json.code,
          1004
        )
      })
    )
  })

  layer(layerGateway({ database: stores.postgres }))((it) => {
    it.effect("attempts are limited by account and by address", () =>
      Effect.gen(function* () {
        const [person, other] = [yield* makePerson, yield* makePerson]
        const wrong = { email: person.email, password: "a wrong password" }
        for (let n = 0; n < 10; n += 1) {
          assert.strictEqual((yield* signIn(wrong)).json.code, 1005)
        }
        // The right password is refused too, so that the limit reveals nothing
        const full = yield* signIn(person.secret)
        assert.deepStrictEqual([full.status, full.json.code], [429, 1201])
        assert.isAtLeast(Number(full.headers.get("retry-after")), 1)
        const cased = yield* signIn({ ...person.secret, email: person.email.toUpperCase() })
        assert.strictEqual(cased.status, 429)
        yield* signedIn(other.secret)
        yield* TestClock.adjust("2 minutes")
        yield* signedIn(person.secret)
        yield* TestClock.adjust("15 minutes")
        for (let n = 0; n < 60; n += 1) {
          const guess = yield* signIn({ link: `sil_${n}` })
          assert.strictEqual(guess.json.code, 1005)
        }
        assert.strictEqual((yield* signIn(other.secret)).json.code, 1201)
        assert.strictEqual((yield* signIn({ operator_token: adminToken })).json.code, 1201)
      })
    )
  })
})
