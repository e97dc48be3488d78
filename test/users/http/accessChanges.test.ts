import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ownPage, signedIn, signIn } from "../../support/browser.ts"
import { makeKey } from "../../support/callers.ts"
import { callWith, layerGateway, makeUser } from "../../support/gateway.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { beginPost } from "../../support/slowBody.ts"

/** Authorization to change keys, sessions and endpoints. docs/reference/keys-and-limits.md#who-changes-access */

const manage = "/manage/v1"
const keys = `${manage}/api-keys`
const endpoints = `${manage}/webhook-endpoints`
const newEndpoint = { url: "https://hooks.example.com/a", events: ["task.failed"] }

const codeOf = ({ json, status }: HttpResult) => [status, json?.code]

/** A second key of scope `manage`. */
const secondKey = Effect.fnUntraced(function* (owner: Effect.Success<ReturnType<typeof makeUser>>) {
  const { key, row } = yield* makeKey(owner.id)
  return { id: row.id, secret: key, call: callWith(key) }
})

/** One object of each kind that a key with scope `manage` may change. */
const makeObjects = Effect.fnUntraced(function* (
  owner: Effect.Success<ReturnType<typeof makeUser>>
) {
  const key = yield* owner.call("POST", keys, { name: "other" })
  const endpoint = yield* owner.call("POST", endpoints, newEndpoint)
  const page = yield* signedIn({ api_key: owner.key })
  return {
    key: `${keys}/${key.json.id}`,
    endpoint: `${endpoints}/${endpoint.json.id}`,
    session: `${manage}/sessions/${page.json.id}`
  }
})

layer(layerGateway(), { timeout: "60 seconds" })(
  "changes of keys, sessions and endpoints",
  (it) => {
    it.effect("neither a replaced secret nor its session may change any of them", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const { call, id, secret } = yield* secondKey(owner)
        const objects = yield* makeObjects(owner)
        const own = `${keys}/${id}`
        const page = yield* signedIn({ api_key: secret })
        const rotated = yield* call("POST", `${own}/rotate`, { grace_seconds: 60 })
        for (const ask of [call, page.call]) {
          for (const [method, path, body] of [
            ["POST", `${own}/rotate`, { grace_seconds: 60 }],
            ["DELETE", own],
            ["PATCH", own, { name: "mine" }],
            ["POST", keys, { name: "mine" }],
            ["PATCH", objects.key, { name: "mine" }],
            ["POST", `${objects.key}/rotate`],
            ["DELETE", objects.key],
            ["DELETE", objects.session],
            ["POST", endpoints, newEndpoint],
            ["PATCH", objects.endpoint, { url: "https://attacker.example.com/" }],
            ["POST", `${objects.endpoint}/rotate`],
            ["DELETE", objects.endpoint]
          ] as const) {
            const refused = yield* ask(method, path, body, ownPage)
            assert.deepStrictEqual(codeOf(refused), [403, 1003], `${method} ${path}`)
            assert.strictEqual(refused.json.status, 403)
          }
          // The purpose of the grace period is still met
          assert.strictEqual((yield* ask("GET", keys, undefined, ownPage)).status, 200)
          const test = yield* ask("POST", `${objects.endpoint}/test`, undefined, ownPage)
          assert.strictEqual(test.status, 202, test.text)
        }
        assert.deepStrictEqual(codeOf(yield* signIn({ api_key: secret })), [403, 1003])
        assert.strictEqual((yield* page.call("DELETE", `${manage}/session`)).status, 204)

        const current = callWith(rotated.json.key)
        const again = yield* current("POST", `${own}/rotate`, { grace_seconds: 0 })
        assert.strictEqual(again.status, 200, again.text)
      })
    )

    it.effect("a key that has limits may revoke itself, but no other key and no session", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const { call, id } = yield* secondKey(owner)
        const objects = yield* makeObjects(owner)
        yield* owner.call("PATCH", `${keys}/${id}`, { spend_limit: "1.00" })
        for (const path of [objects.key, objects.session]) {
          assert.deepStrictEqual(codeOf(yield* call("DELETE", path)), [403, 1004], path)
        }
        assert.strictEqual((yield* owner.call("GET", objects.key)).status, 200)
        assert.strictEqual((yield* call("DELETE", `${keys}/${id}`)).status, 204)
      })
    )

    it.effect("a response that shows a secret is replayed only to the same key", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const second = yield* secondKey(owner)
        for (const [path, body, secret] of [
          [keys, { name: "a", scopes: ["manage"] }, "key"],
          [endpoints, newEndpoint, "secret"]
        ] as const) {
          const once = { "idempotency-key": path }
          const first = yield* owner.call("POST", path, body, once)
          const again = yield* owner.call("POST", path, body, once)
          assert.deepStrictEqual([again.status, again.text], [201, first.text])
          const other = yield* second.call("POST", path, body, once)
          assert.strictEqual(other.status, 201, other.text)
          assert.notStrictEqual(other.json[secret], first.json[secret])
          assert.isFalse(other.headers.has("idempotency-replayed"))
        }
        // Without a secret in the response, the request is the same whichever key sends it
        const { id } = (yield* owner.call("POST", endpoints, newEndpoint)).json
        const once = { "idempotency-key": "test" }
        const first = yield* owner.call("POST", `${endpoints}/${id}/test`, undefined, once)
        const again = yield* second.call("POST", `${endpoints}/${id}/test`, undefined, once)
        assert.deepStrictEqual([again.status, again.text], [202, first.text])
      })
    )

    it.effect("a repeat is authorized before it is replayed", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const { call, id, secret } = yield* secondKey(owner)
        const once = { "idempotency-key": "create" }
        const onceRotated = { "idempotency-key": "rotate" }
        const body = { name: "free", scopes: ["inference"] }
        assert.strictEqual((yield* call("POST", keys, body, once)).status, 201)
        yield* owner.call("PATCH", `${keys}/${id}`, { spend_limit: "1.00" })
        assert.deepStrictEqual(codeOf(yield* call("POST", keys, body, once)), [403, 1004])
        yield* owner.call("PATCH", `${keys}/${id}`, { spend_limit: null })
        assert.strictEqual((yield* call("POST", keys, body, once)).status, 201)

        const rotation = { grace_seconds: 60 }
        const rotated = yield* call("POST", `${keys}/${id}/rotate`, rotation, onceRotated)
        assert.strictEqual(rotated.status, 200, rotated.text)
        const late = callWith(secret)
        for (const [path, sent, headers] of [
          [`${keys}/${id}/rotate`, rotation, onceRotated],
          [keys, body, once]
        ] as const) {
          assert.deepStrictEqual(
            codeOf(yield* late("POST", path, sent, headers)),
            [403, 1003],
            path
          )
        }
      })
    )

    it.effect("a body that was on its way when the key was revoked changes nothing", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const { id, secret } = yield* secondKey(owner)
        const headers = { authorization: `Bearer ${secret}` }
        const late = yield* beginPost(keys, headers, { name: "late" })
        yield* owner.call("DELETE", `${keys}/${id}`)
        const refused = yield* late.finish
        assert.deepStrictEqual(codeOf(refused), [401, 1003])
        const { data } = (yield* owner.call("GET", keys)).json
        assert.notInclude(
          data.map((it: { name: string }) => it.name),
          "late"
        )
      })
    )
  }
)
