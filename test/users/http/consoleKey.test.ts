import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ownPage, signedIn } from "../../support/browser.ts"
import {
  adminToken,
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/sessions.md#inference */

const manage = "/manage/v1"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const chat = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
const password = "correct horse battery"
let people = 0

const makePerson = Effect.gen(function* () {
  const user = yield* makeUser()
  people += 1
  const email = `console-${people}@example.com`
  const at = `${manage}/users/${user.id}`
  yield* operator("PATCH", at, { email, password })
  return { ...user, at, browser: yield* signedIn({ email, password }) }
})

layer(layerGateway({ database: stores.postgres }))("inference by session", (it) => {
  it.effect("a task and a call are charged to the user's one console key", () =>
    Effect.gen(function* () {
      const { browser, call } = yield* makePerson
      const many = yield* Effect.all(
        Array.from({ length: 5 }, (_, n) => browser.call("POST", image, { prompt: `No. ${n}` })),
        { concurrency: "unbounded" }
      )
      for (const made of many) assert.strictEqual(made.status, 202, made.text)
      const path = `${image}/${many[0]!.json.task_info.id}`
      assert.strictEqual((yield* browser.call("GET", path, undefined, {})).status, 200)
      const answer = yield* browser.call("POST", "/v1/chat/completions", chat)
      assert.strictEqual(answer.status, 200, answer.text)
      const keys = yield* call("GET", `${manage}/api-keys`)
      const console = keys.json.data.filter((it: { name: string }) => it.name === "Console")
      assert.lengthOf(console, 1)
      assert.deepInclude(console[0], { preview: "console", scopes: ["inference"] })
      yield* advance("10 seconds")
      yield* eventually(
        browser.call("GET", path),
        ({ json }) => json.task_info.status === "completed"
      )
      const calls = yield* eventually(
        call("GET", `${manage}/calls`),
        ({ json }) => json.data.length > 0
      )
      assert.strictEqual(calls.json.data[0].model, "gpt-4o")
      // Revoking it refuses only what it began; the next request creates a new one
      yield* call("DELETE", `${manage}/api-keys/${console[0].id}`)
      assert.strictEqual((yield* browser.call("POST", image, { prompt: "Again" })).status, 202)
    })
  )

  it.effect("the console key is created with a budget, which its user may change", () =>
    Effect.gen(function* () {
      const { browser, call } = yield* makePerson
      const made = yield* browser.call("POST", image, { prompt: "[[sim:hang]]" })
      assert.strictEqual(made.headers.get("x-service-budget-remaining"), "992.50")
      const shown = Effect.map(call("GET", `${manage}/api-keys`), ({ json }) =>
        json.data.find((it: { name: string }) => it.name === "Console")
      )
      const console = yield* shown
      assert.deepInclude(console, {
        spend_limit: "1000.00",
        reset: "monthly",
        spent: "0.00",
        held: "7.50",
        remaining: "992.50",
        resets_at: "1970-02-01T00:00:00.000Z"
      })
      // After a revocation many concurrent requests create a single new one
      yield* call("DELETE", `${manage}/api-keys/${console.id}`)
      yield* Effect.all(
        Array.from({ length: 5 }, () => browser.call("POST", image, { prompt: "[[sim:hang]]" })),
        { concurrency: "unbounded" }
      )
      assert.deepInclude(yield* shown, { spend_limit: "1000.00", held: "37.50" })
      const path = `${manage}/api-keys/${(yield* shown).id}`
      yield* browser.call("PATCH", path, { spend_limit: null })
      const more = yield* browser.call("POST", image, { prompt: "[[sim:hang]]" })
      assert.isNull(more.headers.get("x-service-budget-remaining"))
    })
  )

  it.effect("a spend limit of the console key bounds what sessions spend", () =>
    Effect.gen(function* () {
      const { browser, call } = yield* makePerson
      const create = browser.call("POST", image, { prompt: "A lighthouse" })
      assert.strictEqual((yield* create).status, 202)
      const console = (yield* call("GET", `${manage}/api-keys`)).json.data.find(
        (it: { name: string }) => it.name === "Console"
      )
      const limit = { spend_limit: "0.01", reset: "monthly" }
      const limited = yield* browser.call("PATCH", `${manage}/api-keys/${console.id}`, limit)
      assert.strictEqual(limited.status, 200, limited.text)
      for (const refused of [
        yield* create,
        yield* browser.call("POST", "/v1/chat/completions", { ...chat, max_tokens: 10_000 })
      ]) {
        assert.deepStrictEqual([refused.status, refused.json.code], [402, 1102], refused.text)
      }
    })
  )

  it.effect("no page of another site and no write without an origin spends a credit", () =>
    Effect.gen(function* () {
      const { browser, call } = yield* makePerson
      const before = yield* call("GET", `${manage}/wallet/entries`)
      for (const headers of [
        {},
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { origin: "https://evil.example" },
        { origin: "null" }
      ]) {
        for (const [path, body] of [
          [image, { prompt: "A lighthouse" }],
          ["/v1/chat/completions", chat],
          ["/vendors/openai/v1/responses", { model: "gpt-4o", input: "Hi" }]
        ] as const) {
          const refused = yield* browser.call("POST", path, body, headers)
          assert.deepStrictEqual([refused.status, refused.json.code], [403, 1007], path)
        }
      }
      const read = yield* browser.call("GET", "/v1/models", undefined, {
        "sec-fetch-site": "cross-site"
      })
      assert.strictEqual(read.json.code, 1007)
      const after = yield* call("GET", `${manage}/wallet/entries`)
      assert.strictEqual(after.text, before.text)
    })
  )

  it.effect(
    "a key, even a wrong one, takes precedence over the cookie; without either it is 1001",
    () =>
      Effect.gen(function* () {
        const { browser } = yield* makePerson
        for (const [path, body] of [
          [image, { prompt: "A lighthouse" }],
          ["/v1/chat/completions", chat]
        ] as const) {
          const wrong = { ...ownPage, authorization: "Bearer sk-wrong" }
          assert.strictEqual((yield* browser.call("POST", path, body, wrong)).json.code, 1002)
          assert.strictEqual(
            (yield* callWith(undefined)("POST", path, body, ownPage)).json.code,
            1001
          )
        }
      })
  )

  it.effect("a session of a key may do what the key may; the operator's session may not", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const key = yield* user.call("POST", `${manage}/api-keys`, {
        name: "m",
        scopes: ["manage"]
      })
      const managing = yield* signedIn({ api_key: key.json.key })
      const refused = yield* managing.call("POST", image, { prompt: "A lighthouse" })
      assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
      const both = yield* signedIn({ api_key: user.key })
      assert.strictEqual((yield* both.call("POST", image, { prompt: "A lighthouse" })).status, 202)
      const keys = yield* user.call("GET", `${manage}/api-keys`)
      assert.notInclude(keys.text, "Console")
      const chief = yield* signedIn({ operator_token: adminToken })
      for (const [path, body] of [
        [image, { prompt: "A lighthouse" }],
        ["/v1/chat/completions", chat]
      ] as const) {
        assert.strictEqual((yield* chief.call("POST", path, body)).json.code, 1004)
      }
    })
  )

  it.effect("ends with the session and with the user", () =>
    Effect.gen(function* () {
      const { at, browser } = yield* makePerson
      const create = browser.call("POST", image, { prompt: "A lighthouse" })
      assert.strictEqual((yield* create).status, 202)
      yield* operator("PATCH", at, { disabled: true })
      for (const path of [image, "/v1/chat/completions"]) {
        const refused = yield* browser.call("POST", path, path === image ? { prompt: "x" } : chat)
        assert.deepStrictEqual([refused.status, refused.json.code], [401, 1006])
      }
    })
  )
})
