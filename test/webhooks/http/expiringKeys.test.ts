import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

/** docs/reference/webhooks.md#expiring-keys: R-WEBHOOK-22 */

const manage = "/manage/v1"
const receiver = "https://127.0.0.1/keys"

const sent = Effect.gen(function* () {
  const log = yield* WebhookSenderLog
  const all = yield* log.sent
  return all
    .filter(({ request }) => request.url === receiver)
    .map(({ request }) => JSON.parse(Buffer.from(request.body).toString()))
})

const inDays = (days: number) =>
  Effect.map(DateTime.now, (now) => DateTime.formatIso(DateTime.add(now, { hours: days * 24 })))

const scan = advance("6 minutes", "30 seconds")

describe("key.expiring", () => {
  layer(layerGateway(), { timeout: "120 seconds" })((it) => {
    it.effect("tells subscribed endpoints once for each time at which a key expires", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const stranger = yield* makeUser()
        const hook = (events: ReadonlyArray<string>, url: string, of = user) =>
          of.call("POST", `${manage}/webhook-endpoints`, { url, events })
        yield* hook(["key.expiring"], receiver)
        yield* hook(["task.failed"], "https://127.0.0.1/other")
        yield* hook(["key.expiring"], "https://127.0.0.1/stranger", stranger)
        const make = Effect.fnUntraced(function* (name: string, days: number) {
          const body = { name, expires_at: yield* inDays(days) }
          const { json } = yield* user.call("POST", `${manage}/api-keys`, body)
          return json
        })
        const soon = yield* make("soon", 7.5)
        const revoked = yield* make("revoked", 7.5)
        yield* make("made for a day", 1)
        yield* make("later", 30)
        yield* user.call("DELETE", `${manage}/api-keys/${revoked.id}`)
        yield* scan
        assert.deepStrictEqual(yield* sent, [])

        // The heartbeats of half a day take too long
        yield* sql`
          UPDATE api_keys SET created_at = created_at - interval '1 day', expires_at = expires_at - interval '1 day'
          WHERE name IN ('soon', 'revoked', '')`
        yield* scan
        const [event] = yield* eventually(sent, ({ length }) => length === 1)
        assert.deepInclude(event, { type: "key.expiring" })
        const { json: shown } = yield* user.call("GET", `${manage}/api-keys/${soon.id}`)
        assert.deepStrictEqual(event.data, {
          user_id: user.id,
          payload: {
            api_key_id: soon.id,
            name: "soon",
            preview: soon.preview,
            expires_at: shown.expires_at
          }
        })
        yield* scan
        assert.strictEqual((yield* sent).length, 1, "once for this time")

        const expires_at = yield* inDays(6)
        yield* user.call("PATCH", `${manage}/api-keys/${soon.id}`, { expires_at })
        yield* scan
        const both = yield* eventually(sent, ({ length }) => length === 2)
        assert.strictEqual(both[1].data.payload.expires_at, expires_at)
      })
    )
  })
})
