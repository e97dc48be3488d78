import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ownPage, signedIn } from "../../support/browser.ts"
import { adminToken, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"

/** docs/reference/keys-and-limits.md#operator: everything of a user, and nothing of it changed. */

const manage = "/manage/v1"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const hook = { url: "https://hooks.example.com/a", events: ["task.created"] }

layer(layerGateway(), { timeout: "60 seconds" })("the operator", (it) => {
  it.effect("may read what a user may, by token and by session, with ?user_id=", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const stranger = yield* makeUser()
      const endpoint = yield* user.call("POST", `${manage}/webhook-endpoints`, hook)
      const task = yield* user.call("POST", image, { prompt: "A lighthouse" })
      const chat = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
      yield* user.call("POST", "/v1/chat/completions", chat)
      const first = (path: string) =>
        eventually(user.call("GET", `${manage}${path}`), ({ json }) => json.data.length > 0).pipe(
          Effect.map(({ json }): string => json.data[0].id)
        )
      const paths = [
        "/api-keys",
        `/api-keys/${yield* first("/api-keys")}`,
        "/webhook-endpoints",
        `/webhook-endpoints/${endpoint.json.id}`,
        `/webhook-endpoints/${endpoint.json.id}/activity`,
        "/webhook-deliveries",
        `/webhook-deliveries/${yield* first("/webhook-deliveries")}`,
        "/wallet",
        "/wallet/entries",
        "/wallet/entries?format=csv",
        "/tasks",
        `/tasks/${task.json.task_info.id}`,
        "/calls",
        `/calls/${yield* first("/calls")}`,
        "/sessions"
      ]
      const session = yield* signedIn({ operator_token: adminToken })
      for (const path of paths) {
        const own = yield* user.call("GET", `${manage}${path}`)
        assert.strictEqual(own.status, 200, path)
        if (own.json?.data !== undefined && path !== "/sessions") assert.isNotEmpty(own.json.data)
        const named = `${manage}${path}${path.includes("?") ? "&" : "?"}user_id=`
        for (const call of [operator, session.call]) {
          const seen = yield* call("GET", `${named}${user.id}`)
          assert.deepStrictEqual([seen.status, seen.text], [200, own.text], path)
          const unnamed = yield* call("GET", `${manage}${path}`)
          if (/^.api-keys.key_/u.test(path)) assert.strictEqual(unnamed.text, own.text)
          else if (path !== "/sessions") assert.strictEqual(unnamed.json.code, 1004, path)
          const other = yield* call("GET", `${named}${stranger.id}`)
          assert.notInclude(other.text, user.id)
          // A user's resource cannot be read as another user's
          if (/\/[\w-]{20,}$/u.test(path)) assert.strictEqual(other.json.code, 2005, path)
        }
        const foreign = yield* stranger.call("GET", `${named}${user.id}`)
        assert.deepStrictEqual([foreign.status, foreign.json.code], [403, 1004], path)
        const same = yield* user.call("GET", `${named}${user.id}`)
        assert.strictEqual(same.text, own.text, path)
      }
    })
  )

  it.effect("may write nothing of a user, whichever user is named", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const endpoint = yield* user.call("POST", `${manage}/webhook-endpoints`, hook)
      const keys = yield* user.call("GET", `${manage}/api-keys`)
      yield* user.call("POST", image, { prompt: "A lighthouse" })
      const delivery = (yield* user.call("GET", `${manage}/webhook-deliveries`)).json.data[0].id
      const at = `/webhook-endpoints/${endpoint.json.id}`
      const session = yield* signedIn({ operator_token: adminToken })
      for (const [method, path, body] of [
        ["POST", "/api-keys", { name: "mine" }],
        ["DELETE", `/api-keys/${keys.json.data[0].id}`, undefined],
        ["PATCH", "/wallet", { trigger_threshold: "1.00" }],
        ["POST", "/webhook-endpoints", hook],
        ["PATCH", at, { enabled: false }],
        ["POST", `${at}/rotate`, undefined],
        ["POST", `${at}/test`, undefined],
        ["DELETE", at, undefined],
        ["POST", `/webhook-deliveries/${delivery}/redeliver`, undefined]
      ] as const) {
        for (const call of [operator, session.call]) {
          const plain = yield* call(method, `${manage}${path}`, body, ownPage)
          assert.deepStrictEqual([plain.status, plain.json.code], [403, 1004], path)
          const named = yield* call(method, `${manage}${path}?user_id=${user.id}`, body, ownPage)
          assert.include([1004, 2001], named.json.code, path)
        }
      }
      assert.strictEqual(
        (yield* user.call("GET", `${manage}${at}`)).text.includes('"enabled":true'),
        true
      )
    })
  )
})
