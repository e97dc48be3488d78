import { assert, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { ownPage, signedIn, signIn } from "../../support/browser.ts"
import { makeKey } from "../../support/callers.ts"
import {
  adminToken,
  callWith,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { beginPost } from "../../support/slowBody.ts"

/** `POST /manage/v1/api-keys/{id}/rotate`. docs/reference/keys-and-limits.md#rotation */

const manage = "/manage/v1"
const keys = `${manage}/api-keys`
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const chat = "/v1/chat/completions"
const hang = { prompt: "[[sim:hang]]" }
const hello = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }

/** A user with a key of scope `manage`, and a key to rotate. */
const makeKeys = Effect.gen(function* () {
  const owner = yield* makeUser()
  const { key, row } = yield* makeKey(owner.id)
  const at = `${keys}/${row.id}`
  const rotate = Effect.fnUntraced(function* (grace_seconds: number) {
    const answer = yield* owner.call("POST", `${at}/rotate`, { grace_seconds })
    assert.strictEqual(answer.status, 200, answer.text)
    return { answer, secret: answer.json.key as string, call: callWith(answer.json.key) }
  })
  return {
    owner,
    at,
    id: row.id,
    secret: key,
    call: callWith(key),
    rotate,
    shown: Effect.map(owner.call("GET", at), ({ json }) => json)
  }
})

type Call = Effect.Success<typeof makeKeys>["call"]

/** On every path that accepts a key: a call (twice, so that it would be cached), a task, and the management API. */
const outcomes = Effect.fnUntraced(function* (call: Call) {
  const answers = [
    yield* call("POST", chat, hello),
    yield* call("POST", chat, hello),
    yield* call("GET", "/v1/models"),
    yield* call("POST", `${image}?dry_run=true`, hang),
    yield* call("GET", `${manage}/wallet`)
  ]
  return [...new Set(answers.map(({ json, status }) => (status < 300 ? status : json.code)))]
})
const works = [200]

layer(layerGateway(), { timeout: "60 seconds" })("the rotation of an API key", (it) => {
  it.effect(
    "gives a new secret; id, limits and spending stay, and both secrets work in the grace period",
    () =>
      Effect.gen(function* () {
        const { at, call, id, owner, rotate, secret, shown } = yield* makeKeys
        const change = {
          spend_limit: "20.00",
          reset: "monthly",
          allowed_models: ["text-to-image-max", "gpt-4o"],
          concurrent_tasks: 5
        }
        yield* owner.call("PATCH", at, change)
        assert.strictEqual((yield* call("POST", image, hang)).status, 202)
        const before = yield* shown
        assert.strictEqual(before.held, "7.50")
        assert.isNull(before.old_key_expires_at)

        const rotated = yield* rotate(60)
        const { key, ...details } = rotated.answer.json
        assert.notStrictEqual(key, secret)
        assert.match(key, /^sk-[0-9A-Za-z]{46}$/u)
        const expected = {
          ...before,
          preview: `sk-...${key.slice(-4)}`,
          old_key_expires_at: "1970-01-01T00:01:00.000Z"
        }
        assert.deepStrictEqual(details, expected)
        assert.deepStrictEqual(yield* shown, expected)
        assert.strictEqual(details.id, id)

        // Both secrets share one budget
        const second = yield* rotated.call("POST", image, hang)
        assert.strictEqual(second.headers.get("x-service-budget-remaining"), "5.00")
        const third = yield* call("POST", image, hang)
        assert.deepStrictEqual([third.status, third.json.code], [402, 1102])

        yield* TestClock.adjust("1 minute")
        const refused = yield* call("POST", image, hang)
        assert.deepStrictEqual([refused.status, refused.json.code], [401, 1003])
        assert.strictEqual((yield* rotated.call("GET", `${manage}/wallet`)).status, 200)
        assert.isNull((yield* shown).old_key_expires_at)
      })
  )

  it.effect("the old secret ends no later than the key", () =>
    Effect.gen(function* () {
      const { at, owner, rotate, shown } = yield* makeKeys
      const end = DateTime.formatIso(DateTime.add(yield* DateTime.now, { seconds: 50 }))
      yield* owner.call("PATCH", at, { expires_at: end })
      const { answer } = yield* rotate(60)
      assert.strictEqual(answer.json.old_key_expires_at, end)
      assert.strictEqual((yield* shown).old_key_expires_at, end)
      yield* TestClock.adjust("50 seconds")
      assert.isNull((yield* shown).old_key_expires_at)
    })
  )

  it.effect(
    "keeps the old secret valid until the grace period ends, on every path, even if it is cached",
    () =>
      Effect.gen(function* () {
        const { call, rotate } = yield* makeKeys
        assert.deepStrictEqual(yield* outcomes(call), works)
        const next = yield* rotate(60)
        assert.deepStrictEqual(yield* outcomes(call), works)
        assert.deepStrictEqual(yield* outcomes(next.call), works)
        yield* TestClock.adjust("59 seconds")
        assert.deepStrictEqual(yield* outcomes(call), works)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* outcomes(call), [1003])
        assert.deepStrictEqual(yield* outcomes(next.call), works)
      })
  )

  it.effect("ends the old secret at once if the grace period is 0, even if the hint is lost", () =>
    Effect.gen(function* () {
      const { call, id, rotate } = yield* makeKeys
      assert.deepStrictEqual(yield* outcomes(call), works)
      const next = yield* rotate(0)
      assert.deepStrictEqual(yield* outcomes(call), [1003])
      assert.deepStrictEqual(yield* outcomes(next.call), works)
      // Another process has rotated the key, and its hint was lost, so the cache still has the old one
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        UPDATE api_keys SET previous_key_hash = key_hash, key_hash = 'x', rotations = rotations + 1
        WHERE id = ${id}`
      assert.deepStrictEqual(yield* outcomes(next.call), [1003])
    })
  )

  it.effect("a create whose secret is replaced while its body arrives is refused", () =>
    Effect.gen(function* () {
      const { call, rotate, secret } = yield* makeKeys
      const keyed = { "idempotency-key": "first" }
      assert.strictEqual((yield* call("POST", image, hang, keyed)).status, 202)
      const headers = { authorization: `Bearer ${secret}` }
      const params = { model: "claude-haiku-4-5", max_tokens: 1, messages: [] }
      const batch = { requests: [{ custom_id: "a", params }] }
      const item = { vendor: "alibaba", model: "text-to-image-max", body: hang }
      const late = [
        yield* beginPost(image, headers, hang),
        yield* beginPost(image, { ...headers, ...keyed }, hang),
        // Refused before its acceptance, where repeats are also searched for
        yield* beginPost(image, { ...headers, ...keyed, "x-service-max-cost": "0.01" }, hang),
        yield* beginPost(`${manage}/task-batches`, headers, { tasks: [item] }),
        yield* beginPost("/v1/messages/batches", headers, batch),
        yield* beginPost("/v1/responses", headers, {
          model: "gpt-4o",
          input: "Hi",
          background: true
        })
      ]
      yield* rotate(0)
      const codes = yield* Effect.forEach(late, ({ finish }) =>
        Effect.map(finish, ({ json }) => json.code)
      )
      assert.deepStrictEqual(codes, [1003, 1003, 1103, 1003, 1003, 1003])
    })
  )

  it.effect("ends the old secret at once without a grace period; the body may be left out", () =>
    Effect.gen(function* () {
      const { at, owner, secret } = yield* makeKeys
      const http = yield* GatewayHttp
      const headers = { authorization: `Bearer ${owner.key}` }
      const json = { ...headers, "content-type": "application/json" }
      let last = callWith(secret)
      for (const request of [
        { headers },
        { headers: json, body: "" },
        { headers: json, body: "{}" }
      ]) {
        const response = yield* http.fetch(`${at}/rotate`, { method: "POST", ...request })
        const rotated = (yield* Effect.promise(() => response.json())) as Record<string, string>
        assert.strictEqual(response.status, 200, JSON.stringify(rotated))
        assert.isNull(rotated["old_key_expires_at"])
        assert.deepStrictEqual(yield* outcomes(last), [1003])
        last = callWith(rotated["key"]!)
        assert.deepStrictEqual(yield* outcomes(last), works)
      }
      const once = { "idempotency-key": "rotate-without-a-body" }
      const first = yield* owner.call("POST", `${at}/rotate`, undefined, once)
      const again = yield* owner.call("POST", `${at}/rotate`, {}, once)
      assert.deepStrictEqual([again.status, again.text], [200, first.text])
      assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
    })
  )

  it.effect(
    "in another grace period leaves only the newest two secrets valid; a revocation leaves none",
    () =>
      Effect.gen(function* () {
        const first = yield* makeKeys
        const second = yield* first.rotate(3600)
        const third = yield* first.rotate(3600)
        assert.deepStrictEqual(yield* outcomes(first.call), [1002])
        assert.deepStrictEqual(yield* outcomes(second.call), works)
        assert.deepStrictEqual(yield* outcomes(third.call), works)
        yield* first.rotate(0)
        assert.deepStrictEqual(yield* outcomes(second.call), [1002])
        assert.deepStrictEqual(yield* outcomes(third.call), [1003])
        const last = yield* first.rotate(3600)
        assert.strictEqual((yield* first.owner.call("DELETE", first.at)).status, 204)
        for (const { call } of [third, last]) {
          const [code] = yield* outcomes(call)
          assert.include([1002, 1003], code)
        }
        assert.deepStrictEqual(yield* outcomes(last.call), [1003])
        const gone = yield* first.owner.call("POST", `${first.at}/rotate`, { grace_seconds: 0 })
        assert.deepStrictEqual([gone.status, gone.json.code], [404, 2005])
      })
  )

  it.effect("ends sessions together with the secret that opened them", () =>
    Effect.gen(function* () {
      const { rotate, secret } = yield* makeKeys
      const status = (page: { readonly call: Call }) =>
        Effect.map(page.call("GET", `${manage}/session`, undefined, ownPage), (it) => it.status)
      const before = yield* signedIn({ api_key: secret })
      const next = yield* rotate(60)
      const late = yield* signIn({ api_key: secret })
      assert.deepStrictEqual([late.status, late.json.code], [403, 1003])
      const fresh = yield* signedIn({ api_key: next.secret })
      for (const page of [before, fresh]) assert.strictEqual(yield* status(page), 200)
      const made = yield* before.call("POST", image, hang, ownPage)
      assert.strictEqual(made.status, 202, made.text)
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(yield* status(before), 401)
      assert.strictEqual(yield* status(fresh), 200)
      yield* rotate(0)
      assert.strictEqual(yield* status(fresh), 401)
    })
  )

  it.effect(
    "is open to the user, the operator and the key itself; a console key has no secret",
    () =>
      Effect.gen(function* () {
        const { at, call, id, owner } = yield* makeKeys
        const other = yield* makeUser()
        const rotation = { grace_seconds: 60 }
        const foreign = yield* other.call("POST", `${at}/rotate`, rotation)
        assert.deepStrictEqual([foreign.status, foreign.json.code], [404, 2005])
        for (const [body, pointer] of [
          [null, "#"],
          [[], "#"],
          [{ expires_in: 60 }, "#/expires_in"],
          [{ grace_seconds: null }, "#/grace_seconds"],
          [{ grace_seconds: "60" }, "#/grace_seconds"],
          [{ grace_seconds: -1 }, "#/grace_seconds"],
          [{ grace_seconds: 1.5 }, "#/grace_seconds"],
          [{ grace_seconds: 7 * 86_400 + 1 }, "#/grace_seconds"]
        ] as const) {
          const { json } = yield* owner.call("POST", `${at}/rotate`, body)
          assert.deepStrictEqual([json.code, json.errors?.[0].pointer], [2001, pointer])
        }
        const own = yield* call("POST", `${at}/rotate`, rotation)
        assert.strictEqual(own.status, 200, own.text)
        const again = { "idempotency-key": "rotate-once" }
        const first = yield* operator("POST", `${at}/rotate`, rotation, again)
        const replayed = yield* operator("POST", `${at}/rotate`, rotation, again)
        assert.strictEqual(replayed.text, first.text)
        assert.strictEqual(first.json.id, id)

        const page = yield* signedIn({ operator_token: adminToken })
        const email = `${owner.id}@console.example.com`
        const password = "correct horse battery"
        yield* page.call("PATCH", `${manage}/users/${owner.id}`, { email, password }, ownPage)
        const browser = yield* signedIn({ email, password })
        yield* browser.call("POST", image, hang, ownPage)
        const listed = (yield* owner.call("GET", keys)).json.data
        const console = listed.find((it: { name: string }) => it.name === "Console")
        const refused = yield* owner.call("POST", `${keys}/${console.id}/rotate`, rotation)
        assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
      })
  )
})

layer(layerGateway(), { timeout: "60 seconds" })("a key that has limits", (it) => {
  const limits = {
    spend_limit: "1.00",
    allowed_models: ["gpt-4o"],
    rate_limit_per_minute: 60,
    concurrent_tasks: 1,
    expires_at: "2099-01-01T00:00:00.000Z"
  }
  for (const [name, limit] of Object.entries(limits)) {
    it.effect(
      `(${name}) may not create, change, rotate or revoke other keys, and neither may its session`,
      () =>
        Effect.gen(function* () {
          const { at, call, owner, rotate, secret } = yield* makeKeys
          const other = (yield* owner.call("POST", keys, { name: "other" })).json.id
          const page = yield* signedIn({ api_key: secret })
          yield* owner.call("PATCH", at, { [name]: limit })
          for (const ask of [call, page.call]) {
            for (const [method, path, body] of [
              ["POST", keys, { name: "free", scopes: ["inference"] }],
              ["PATCH", `${keys}/${other}`, { spend_limit: null }],
              ["POST", `${keys}/${other}/rotate`, { grace_seconds: 0 }],
              ["DELETE", `${keys}/${other}`, undefined]
            ] as const) {
              const refused = yield* ask(method, path, body, ownPage)
              assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004], path)
            }
          }
          // It may still read, and rotate itself
          assert.strictEqual((yield* call("GET", keys)).status, 200)
          const own = yield* call("POST", `${at}/rotate`, { grace_seconds: 0 })
          assert.strictEqual(own.status, 200, own.text)
          assert.isNotNull(own.json[name])
          yield* owner.call("PATCH", at, { [name]: null })
          const next = yield* rotate(0)
          assert.strictEqual((yield* next.call("POST", keys, { name: "free" })).status, 201)
        })
    )
  }
})
