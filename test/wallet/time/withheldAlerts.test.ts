import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

describe("balance.low that the throttle withheld", () => {
  it.effect("is delivered when the window ends, without another charge", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 1005 })
      yield* user.call("POST", "/manage/v1/webhook-endpoints", {
        url: "https://127.0.0.1/hook",
        events: ["balance.low"]
      })
      const charge = Effect.gen(function* () {
        yield* user.call("POST", path, { prompt: "x" })
        yield* advance("5 seconds")
        yield* eventually(
          user.call("GET", "/manage/v1/wallet"),
          ({ json }) => json.held_balance === "0.00"
        )
      })
      const sql = yield* SqlClient.SqlClient
      const delivered = Effect.map(
        sql`SELECT 1 FROM deliveries WHERE event_type = 'balance.low' AND status = 'succeeded'`,
        (rows) => rows.length
      )
      yield* charge
      assert.strictEqual(yield* eventually(delivered, (count) => count === 1), 1)
      yield* operator("POST", `/manage/v1/users/${user.id}/adjustments`, {
        amount: "5.00",
        note: "back"
      })
      yield* charge
      yield* advance("40 seconds")
      assert.strictEqual(yield* delivered, 1)
      yield* advance("25 seconds")
      assert.strictEqual(yield* eventually(delivered, (count) => count === 2), 2)
      const wallet = yield* user.call("GET", "/manage/v1/wallet")
      assert.strictEqual(wallet.json.state, "ALERTED")
    }).pipe(Effect.provide(layerGateway({ env: { BALANCE_ALERT_THROTTLE: "1 minute" } })))
  )
})
