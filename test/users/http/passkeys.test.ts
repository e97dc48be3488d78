import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Sessions } from "../../../src/users/Sessions.ts"
import { makeAuthenticator } from "../../support/authenticator.ts"
import { signedIn, signIn } from "../../support/browser.ts"
import {
  adminToken,
  baseUrl,
  callWith,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/sessions.md#passkeys */

const manage = "/manage/v1"
const password = "correct horse battery"
const place = { origin: baseUrl, rpId: new URL(baseUrl).hostname }
let people = 0

/** A user with a password, in a browser. */
const makePerson = Effect.gen(function* () {
  const user = yield* makeUser()
  people += 1
  const email = `passkey-${people}@example.com`
  yield* operator("PATCH", `${manage}/users/${user.id}`, { email, password })
  const sql = yield* SqlClient.SqlClient
  // Sign-in attempts are limited
  yield* sql`DELETE FROM request_buckets`
  return { ...user, email, browser: yield* signedIn({ email, password }) }
})
type Person = Effect.Success<typeof makePerson>

const challengeOf = (browser: Person["browser"]) =>
  Effect.map(browser.call("GET", `${manage}/passkeys/options`), ({ json, status, text }) => {
    assert.strictEqual(status, 200, text)
    return json as { readonly challenge: string; readonly [name: string]: unknown }
  })

const signInChallenge = Effect.map(
  callWith(undefined)("GET", `${manage}/session/passkey`),
  ({ json, status, text }) => {
    assert.strictEqual(status, 200, text)
    return json.challenge as string
  }
)

const add = (browser: Person["browser"], credential: unknown, fields: object = {}) =>
  browser.call("POST", `${manage}/passkeys`, {
    name: "Laptop",
    current_password: password,
    credential,
    ...fields
  })

/** A user with a passkey. */
const makeOwner = Effect.gen(function* () {
  const person = yield* makePerson
  const key = makeAuthenticator(place)
  const { challenge } = yield* challengeOf(person.browser)
  const made = yield* add(person.browser, key.create({ challenge }))
  assert.strictEqual(made.status, 201, made.text)
  return { ...person, key, passkey: made.json as { readonly id: string } }
})

const codes = ({ json, status }: Pick<HttpResult, "json" | "status">) => [status, json?.code]

layer(layerGateway({ database: stores.postgres }))("passkeys", (it) => {
  it.effect("are created in a session, are listed, and sign in beside the password", () =>
    Effect.gen(function* () {
      const person = yield* makePerson
      const key = makeAuthenticator(place)
      const options = yield* challengeOf(person.browser)
      const handle = Buffer.from(person.id.replaceAll("-", ""), "hex").toString("base64url")
      assert.deepInclude(options, {
        rp: { id: "gateway.test", name: "Service" },
        user: { id: handle, name: person.email, displayName: person.email },
        attestation: "none",
        excludeCredentials: [],
        authenticatorSelection: {
          residentKey: "required",
          requireResidentKey: true,
          userVerification: "required"
        }
      })
      const made = yield* add(person.browser, key.create(options))
      assert.strictEqual(made.status, 201, made.text)
      assert.deepInclude(made.json, { name: "Laptop", last_used_at: null })
      assert.match(made.json.id, /^pky_/u)
      const others = (yield* challengeOf(person.browser))["excludeCredentials"]
      assert.deepStrictEqual(others, [{ type: "public-key", id: key.id }])

      const challenge = yield* signInChallenge
      const response = yield* signIn({ passkey: key.get({ challenge, counter: 1 }, person.id) })
      assert.strictEqual(response.status, 200, response.text)
      assert.deepInclude(response.json, { role: "user", method: "passkey", current: true })
      assert.strictEqual(response.json.user.id, person.id)
      const list = yield* person.browser.call("GET", `${manage}/passkeys`)
      assert.strictEqual(list.json.data.length, 1)
      assert.isNotNull(list.json.data[0].last_used_at)
      assert.notInclude(list.text, key.id)
      const seen = yield* operator("GET", `${manage}/passkeys?user_id=${person.id}`)
      assert.deepStrictEqual(seen.json, list.json)
      assert.strictEqual((yield* signIn({ email: person.email, password })).status, 200)
    })
  )

  it.effect("a response that is wrong in any part is refused, and its challenge is used up", () =>
    Effect.gen(function* () {
      const { id, key } = yield* makeOwner
      const stranger = makeAuthenticator(place)
      const other = yield* makeUser()
      const good = yield* signInChallenge
      const wrong: ReadonlyArray<readonly [string, (challenge: string) => unknown]> = [
        ["another origin", (challenge) => key.get({ challenge, origin: "http://evil.test" }, id)],
        ["another party", (challenge) => key.get({ challenge, rpId: "evil.test" }, id)],
        ["a registration", (challenge) => key.get({ challenge, type: "webauthn.create" }, id)],
        ["nobody verified", (challenge) => key.get({ challenge, isVerified: false }, id)],
        ["nobody present", (challenge) => key.get({ challenge, isPresent: false }, id)],
        ["a frame", (challenge) => key.get({ challenge, crossOrigin: true }, id)],
        ["another user", (challenge) => key.get({ challenge }, other.id)],
        ["an unknown passkey", (challenge) => stranger.get({ challenge }, id)],
        [
          "another key's signature",
          (challenge) => ({ ...stranger.get({ challenge }, id), id: key.id, rawId: key.id })
        ],
        ["another challenge", () => key.get({ challenge: "AAAA" }, id)],
        [
          "a challenge of another expiry",
          (challenge) => {
            const text = Buffer.from(challenge, "base64url").toString()
            const later = text.replace(/\.(\d+)\./u, (_, at) => `.${Number(at) + 1}.`)
            return key.get({ challenge: Buffer.from(later).toString("base64url") }, id)
          }
        ]
      ]
      const sql = yield* SqlClient.SqlClient
      for (const [what, answer] of wrong) {
        yield* sql`DELETE FROM request_buckets`
        const challenge = yield* signInChallenge
        const refused = yield* signIn({ passkey: answer(challenge) })
        assert.deepStrictEqual(codes(refused), [401, 1005], what)
        assert.deepStrictEqual(refused.headers.getSetCookie(), [], what)
      }
      const first = yield* signIn({ passkey: key.get({ challenge: good, counter: 5 }, id) })
      assert.strictEqual(first.status, 200, first.text)
      const again = yield* signIn({ passkey: key.get({ challenge: good, counter: 6 }, id) })
      assert.deepStrictEqual(codes(again), [401, 1005], "a challenge is answered once")
      const copied = yield* signInChallenge
      const counted = key.get({ challenge: copied, counter: 5 }, id)
      assert.deepStrictEqual(codes(yield* signIn({ passkey: counted })), [401, 1005], "a copy")
      const late = yield* signInChallenge
      yield* TestClock.adjust("5 minutes")
      const expired = yield* signIn({ passkey: key.get({ challenge: late, counter: 9 }, id) })
      assert.deepStrictEqual(codes(expired), [401, 1005], "five minutes later")
    })
  )

  it.effect("many concurrent responses to one challenge sign in once", () =>
    Effect.gen(function* () {
      const { id, key } = yield* makeOwner
      const challenge = yield* signInChallenge
      const passkey = key.get({ challenge }, id)
      const all = yield* Effect.all(
        Array.from({ length: 5 }, () => signIn({ passkey })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(all.map(({ status }) => status).sort(), [200, 401, 401, 401, 401])
    })
  )

  it.effect("are added only after their user is verified, in the session that asked for it", () =>
    Effect.gen(function* () {
      const { browser, email, id, key: program } = yield* makePerson
      const other = yield* signedIn({ email, password })
      const key = makeAuthenticator(place)
      const made = (challenge: string, fields = {}) => key.create({ challenge, ...fields })
      const fresh = Effect.map(challengeOf(browser), (it) => it.challenge)
      const sql = yield* SqlClient.SqlClient
      const refusals = [
        [
          "a wrong password",
          Effect.flatMap(fresh, (it) => add(browser, made(it), { current_password: "12345678" })),
          1005
        ],
        [
          "no password",
          Effect.flatMap(fresh, (challenge) =>
            browser.call("POST", `${manage}/passkeys`, { name: "a", credential: made(challenge) })
          ),
          1005
        ],
        ["another session", Effect.flatMap(fresh, (it) => add(other, made(it))), 1005],
        [
          "the challenge of a sign-in",
          Effect.flatMap(signInChallenge, (it) => add(browser, made(it))),
          1005
        ],
        [
          "another origin",
          Effect.flatMap(fresh, (it) => add(browser, made(it, { origin: "http://evil.test" }))),
          1005
        ],
        [
          "another party",
          Effect.flatMap(fresh, (it) => add(browser, made(it, { rpId: "evil.test" }))),
          1005
        ],
        [
          "nobody verified",
          Effect.flatMap(fresh, (it) => add(browser, made(it, { isVerified: false }))),
          1005
        ],
        ["no name", Effect.flatMap(fresh, (it) => add(browser, made(it), { name: "" })), 2001],
        [
          "a long name",
          Effect.flatMap(fresh, (it) => add(browser, made(it), { name: "雪".repeat(101) })),
          2001
        ]
      ] as const
      for (const [what, request, code] of refusals) {
        yield* sql`DELETE FROM request_buckets`
        const refused = yield* request
        assert.strictEqual(refused.json.code, code, `${what}: ${refused.text}`)
      }
      yield* sql`DELETE FROM request_buckets`
      // Neither a key, nor its session, nor the operator has passkeys
      const challenge = yield* fresh
      const byKey = callWith(program)
      assert.deepStrictEqual(codes(yield* byKey("GET", `${manage}/passkeys/options`)), [404, 2005])
      for (const secret of [{ api_key: program }, { operator_token: adminToken }]) {
        const session = yield* signedIn(secret)
        const options = yield* session.call("GET", `${manage}/passkeys/options`)
        assert.deepStrictEqual(codes(options), [403, 1004])
        assert.deepStrictEqual(codes(yield* add(session, made(challenge))), [403, 1004])
      }
      const none = yield* browser.call("GET", `${manage}/passkeys`)
      assert.deepStrictEqual(none.json.data, [])
      const first = yield* add(browser, made(challenge))
      assert.strictEqual(first.status, 201, first.text)
      const twice = yield* add(browser, made(yield* fresh))
      assert.deepStrictEqual(codes(twice), [409, 2010], "it is registered already")
      yield* sql`
        INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, name, created_at)
        SELECT 'pky_' || n, ${id}::uuid, decode(md5(n::text), 'hex'), '', 0, 'n', to_timestamp(0)
        FROM generate_series(1, 9) n`
      const eleventh = yield* add(
        browser,
        makeAuthenticator(place).create({ challenge: yield* fresh })
      )
      assert.deepStrictEqual(codes(eleventh), [409, 2010])
      yield* sql`DELETE FROM passkeys WHERE name = 'n'`
    })
  )

  it.effect("are added by a user without a password right after a link, and not later", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const made = yield* operator("POST", `${manage}/users/${user.id}/sign-in-links`)
      const browser = yield* signedIn({ link: made.json.url })
      const key = makeAuthenticator(place)
      const plain = (challenge: string, by = key) =>
        browser.call("POST", `${manage}/passkeys`, {
          name: "Phone",
          credential: by.create({ challenge })
        })
      assert.strictEqual((yield* plain((yield* challengeOf(browser)).challenge)).status, 201)
      yield* TestClock.adjust("10 minutes")
      const { challenge } = yield* challengeOf(browser)
      assert.deepStrictEqual(codes(yield* plain(challenge, makeAuthenticator(place))), [403, 1004])
    })
  )

  it.effect(
    "no longer sign in once removed, which also ends the sessions that passkeys opened",
    () =>
      Effect.gen(function* () {
        const { browser, id, key, passkey } = yield* makeOwner
        const stranger = yield* makePerson
        const assertion = (challenge: string) => ({ passkey: key.get({ challenge }, id) })
        const opened = yield* signedIn(assertion(yield* signInChallenge))
        const path = `${manage}/passkeys/${passkey.id}`
        assert.deepStrictEqual(codes(yield* stranger.browser.call("DELETE", path)), [404, 2005])
        assert.strictEqual((yield* opened.call("GET", `${manage}/session`)).status, 200)
        assert.strictEqual((yield* browser.call("DELETE", path)).status, 204)
        assert.strictEqual((yield* browser.call("GET", `${manage}/session`)).status, 200)
        assert.deepStrictEqual(codes(yield* opened.call("GET", `${manage}/session`)), [401, 1006])
        const late = yield* signIn(assertion(yield* signInChallenge))
        assert.deepStrictEqual(codes(late), [401, 1005])
      })
  )

  it.effect("are refused for a disabled user, and are gone for a deleted user", () =>
    Effect.gen(function* () {
      const { id, key } = yield* makeOwner
      const at = `${manage}/users/${id}`
      const tryIt = Effect.flatMap(signInChallenge, (challenge) =>
        signIn({ passkey: key.get({ challenge }, id) })
      )
      const exported = yield* operator("GET", `${at}/export`)
      assert.match(exported.text, /"object":"passkey","id":"pky_[^"]+","name":"Laptop"/u)
      yield* operator("PATCH", at, { disabled: true })
      assert.deepStrictEqual(codes(yield* tryIt), [401, 1005])
      yield* operator("PATCH", at, { disabled: false })
      assert.strictEqual((yield* tryIt).status, 200)
      yield* operator("DELETE", at)
      assert.deepStrictEqual(codes(yield* tryIt), [401, 1005])
      const sql = yield* SqlClient.SqlClient
      assert.deepStrictEqual(yield* sql`SELECT id FROM passkeys WHERE user_id = ${id}`, [])
    })
  )

  it.effect("sign-ins with passkeys count as attempts", () =>
    Effect.gen(function* () {
      const { id, key } = yield* makeOwner
      const challenge = yield* signInChallenge
      const passkey = key.get({ challenge, isVerified: false }, id)
      const all = yield* Effect.forEach(Array.from({ length: 61 }), () => signIn({ passkey }))
      assert.deepStrictEqual(codes(all.at(-1)!), [429, 1201])
      // The stored challenges are deleted with them
      const sql = yield* SqlClient.SqlClient
      const kept = sql`SELECT 1 FROM passkey_challenges`
      const { deleteExpired } = yield* Sessions
      yield* deleteExpired
      assert.isNotEmpty(yield* kept)
      yield* TestClock.adjust("5 minutes")
      yield* deleteExpired
      assert.isEmpty(yield* kept)
      yield* sql`DELETE FROM request_buckets`
    })
  )
})

layer(layerGateway({ env: { BASE_URL: "http://192.0.2.1:8080" } }), { timeout: "60 seconds" })(
  "passkeys at an IP address",
  (it) => {
    it.effect("are not offered", () =>
      Effect.gen(function* () {
        const service = yield* callWith(undefined)("GET", `${manage}/service`)
        assert.isFalse(service.json.passkeys)
        const options = yield* callWith(undefined)("GET", `${manage}/session/passkey`)
        assert.deepStrictEqual(codes(options), [404, 2005])
      })
    )
  }
)
