import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { makeKey } from "../../support/callers.ts"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"

/** docs/reference/wallet.md#wallet-audit */

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const hang = { prompt: "[[sim:hang]]" }
const chat = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }

/** The drift found by the next audit of budgets. */
const drift = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE wallet_audit_rounds SET budgets_checked_at = NULL`
  yield* advance("30 seconds", "10 seconds")
  yield* eventually(
    sql`SELECT budgets_checked_at FROM wallet_audit_rounds WHERE budgets_checked_at IS NOT NULL`,
    (rows) => rows.length > 0
  )
  const metrics = yield* callWith(undefined)("GET", "/metrics")
  const shown = Number(/^gateway_key_budget_drift (\d+)$/mu.exec(metrics.text)?.[1])
  const { json } = yield* operator("GET", "/manage/v1/queues")
  assert.strictEqual(json.wallets.budget_drift, shown)
  assert.isNotNull(json.wallets.budgets_audited_at)
  return shown
})

layer(layerGateway(), { timeout: "60 seconds" })("the audit of spend limits", (it) => {
  it.effect(
    "finds none over tasks, calls and periods, and counts each budget that cannot be right",
    () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const { key, row } = yield* makeKey(owner.id, ["inference"])
        const call = callWith(key)
        // Spent before the key had a limit, so not counted
        assert.strictEqual((yield* call("POST", "/v1/chat/completions", chat)).status, 200)
        const limit = { spend_limit: "100", reset: "daily" }
        yield* owner.call("PATCH", `/manage/v1/api-keys/${row.id}`, limit)
        const made = yield* call("POST", image, hang)
        assert.strictEqual((yield* call("POST", image, hang)).status, 202)
        assert.strictEqual((yield* call("POST", "/v1/chat/completions", chat)).status, 200)
        assert.strictEqual((yield* call("POST", image, { prompt: "A lighthouse" })).status, 202)
        assert.strictEqual(yield* drift, 0)
        yield* call("DELETE", `${image}/${made.json.task_info.id}`)
        assert.strictEqual(yield* drift, 0)

        const sql = yield* SqlClient.SqlClient
        for (const [fault, mend] of [
          [
            sql`UPDATE key_budgets SET held = held + 1`,
            sql`UPDATE key_budgets SET held = held - 1`
          ],
          [
            sql`UPDATE key_budgets SET spent = spent + 1000000000`,
            sql`UPDATE key_budgets SET spent = spent - 1000000000`
          ]
        ] as const) {
          yield* fault
          assert.strictEqual(yield* drift, 1)
          yield* mend
          assert.strictEqual(yield* drift, 0)
        }
        // If the period had begun days ago, the first call would have to be counted
        yield* sql`UPDATE key_budgets SET since = since - interval '4 days'`
        assert.strictEqual(yield* drift, 1)
        yield* owner.call("PATCH", `/manage/v1/api-keys/${row.id}`, {
          reset: "weekly"
        })
        assert.strictEqual(yield* drift, 0)
      })
  )
})
