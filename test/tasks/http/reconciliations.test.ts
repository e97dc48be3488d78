import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { makeCallId, makeTaskId } from "../../../src/domain/Ids.ts"
import { layerGateway, makeUser, operator } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/reconciliation.md */

const path = "/manage/v1/reconciliations"

layer(layerGateway({ database: stores.postgres }))("vendors' bills", (it) => {
  it.effect("are compared with the jobs of the vendor's accounts, and with usage by model", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const user = yield* makeUser()
      const submitted = Effect.fnUntraced(function* (
        job: string,
        captured: number,
        day: string,
        // As a submit records it: adapter and account
        account = "replicate@replicate:0123456789",
        sandbox = false
      ) {
        const at = new Date(`${day}T12:00:00Z`)
        const id = makeTaskId(at.getTime())
        yield* sql`
              INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
                captured, created_at, updated_at)
              VALUES (${id}, ${user.id}, 'black-forest', 'flux', 'generation', 'images', 'completed', '{}',
                ${sandbox}, 10000000, ${captured}, ${at}, ${at})`
        yield* sql`
              INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, handle, started_at)
              VALUES (${id}, 1, 'black-forest', ${account}, 'x', 'submitted',
                ${JSON.stringify({ id: job, getUrl: `https://x.example/${job}` })}::text::jsonb, ${at})`
        return id
      })
      yield* submitted("same", 5_000_000, "2026-11-20")
      yield* submitted("dear", 5_000_000, "2026-11-21")
      const failed = yield* submitted("failed", 0, "2026-11-20")
      const unbilled = yield* submitted("unbilled", 7_500_000, "2026-11-21")
      yield* submitted("other", 5_000_000, "2026-11-20", "fal-queue@fal:0123456789")
      yield* submitted("simulated", 5_000_000, "2026-11-20", "replicate@replicate:0123456789", true)
      yield* submitted("before", 5_000_000, "2026-11-19")
      yield* sql`
            INSERT INTO usage_days VALUES
              (${user.id}, '2026-11-21', '', 'openai', 'gpt-4o', false, 1, 0, 0, 0, 0, 0, 0, 0, 3000000, 0)`
      const bill = [
        "prediction,model,when,usd",
        "same,f,2026-11-20T10:00:00Z,0.05",
        "dear,f,2026-11-21,0.07",
        "failed,f,2026-11-20,0.04",
        "unknown,f,2026-11-20,0.01",
        ",gpt-4o,2026-11-21,0.02",
        ",gpt-4o,2026-11-21,0.02"
      ].join("\r\n")
      const columns = { id: "prediction", date: "when", amount: "usd" }
      const answer = yield* operator("POST", path, { vendor: "replicate", bill, columns })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.deepStrictEqual(answer.json, {
        vendor: "replicate",
        from: "2026-11-20",
        to: "2026-11-21",
        lines: 6,
        billed: "21.00",
        matched: 3,
        margin: {
          billed: "21.00",
          charged: "13.00",
          margin: "-8.00",
          models: [
            { model: "flux", billed: "16.00", charged: "10.00", margin: "-6.00" },
            { model: "gpt-4o", billed: "4.00", charged: "3.00", margin: "-1.00" },
            { model: "f", billed: "1.00", charged: "0.00", margin: "-1.00" }
          ],
          days: [
            { day: "2026-11-20", billed: "10.00", charged: "5.00", margin: "-5.00" },
            { day: "2026-11-21", billed: "11.00", charged: "8.00", margin: "-3.00" }
          ]
        },
        bought_not_charged: {
          count: 2,
          billed: "5.00",
          data: [
            {
              id: "failed",
              model: "f",
              day: "2026-11-20",
              billed: "4.00",
              task_id: failed,
              call_id: null
            },
            {
              id: "unknown",
              model: "f",
              day: "2026-11-20",
              billed: "1.00",
              task_id: null,
              call_id: null
            }
          ]
        },
        charged_not_bought: {
          count: 1,
          charged: "7.50",
          data: [
            {
              task_id: unbilled,
              call_id: null,
              model: "flux",
              day: "2026-11-21",
              charged: "7.50"
            }
          ]
        },
        differences: [
          {
            day: "2026-11-21",
            model: "flux",
            billed: "7.00",
            charged: "5.00",
            difference: "-2.00"
          },
          {
            day: "2026-11-21",
            model: "gpt-4o",
            billed: "4.00",
            charged: "3.00",
            difference: "-1.00"
          }
        ]
      })
    })
  )

  it.effect("name calls by the vendor's request id, which is stored with the receipt", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const user = yield* makeUser()
      const called = Effect.fnUntraced(function* (
        request: string | null,
        captured: number,
        day: string,
        account = "openai:0123456789",
        sandbox = false
      ) {
        const at = new Date(`${day}T12:00:00Z`)
        const id = makeCallId(at.getTime())
        yield* sql`
              INSERT INTO calls (id, user_id, vendor, model, route, account_id, outcome, held, captured, sandbox,
                created_at, ended_at, request_id)
              VALUES (${id}, ${user.id}, 'openai', 'gpt-4o', 'POST /v1/chat/completions', ${account}, 'settled',
                10000000, ${captured}, ${sandbox}, ${at}, ${at}, ${request})`
        return id
      })
      yield* called("req_same", 5_000_000, "2026-10-20")
      yield* called("req_dear", 5_000_000, "2026-10-21")
      const free = yield* called("req_free", 0, "2026-10-20")
      const unbilled = yield* called("req_unbilled", 7_500_000, "2026-10-21")
      yield* called("req_other", 5_000_000, "2026-10-20", "anthropic:0123456789")
      yield* called("req_simulated", 5_000_000, "2026-10-20", "openai:0123456789", true)
      yield* called(null, 5_000_000, "2026-10-20")
      // It began the day before and was billed on the first
      yield* called("req_night", 2_000_000, "2026-10-19")
      const bill = [
        "request_id,model,date,amount",
        "req_same,gpt-4o,2026-10-20,0.05",
        "req_dear,gpt-4o,2026-10-21,0.07",
        "req_free,gpt-4o,2026-10-20,0.04",
        "req_night,gpt-4o,2026-10-20,0.02",
        "req_unknown,gpt-4o,2026-10-20,0.01"
      ].join("\n")
      const columns = { id: "request_id" }
      const { json } = yield* operator("POST", path, { vendor: "openai", bill, columns })
      assert.deepInclude(json, { lines: 5, matched: 4, billed: "19.00" })
      assert.deepStrictEqual(json.bought_not_charged, {
        count: 2,
        billed: "5.00",
        data: [
          {
            id: "req_free",
            model: "gpt-4o",
            day: "2026-10-20",
            billed: "4.00",
            task_id: null,
            call_id: free
          },
          {
            id: "req_unknown",
            model: "gpt-4o",
            day: "2026-10-20",
            billed: "1.00",
            task_id: null,
            call_id: null
          }
        ]
      })
      assert.deepStrictEqual(json.charged_not_bought, {
        count: 1,
        charged: "7.50",
        data: [
          {
            task_id: null,
            call_id: unbilled,
            model: "gpt-4o",
            day: "2026-10-21",
            charged: "7.50"
          }
        ]
      })
      assert.deepStrictEqual(json.differences, [
        {
          day: "2026-10-21",
          model: "gpt-4o",
          billed: "7.00",
          charged: "5.00",
          difference: "-2.00"
        }
      ])
      // A bill without call ids is not compared call by call
      const sums = yield* operator("POST", path, {
        vendor: "openai",
        bill: "id,model,date,amount\n,gpt-4o,2026-10-20,0.05"
      })
      assert.deepInclude(sums.json.charged_not_bought, { count: 0, data: [] })
    })
  )

  it.effect("are only for the operator, and refused if they cannot be read", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const bill = "id,model,date,amount\nx,m,2026-11-20,1\n"
      const own = yield* user.call("POST", path, { vendor: "fal", bill })
      assert.deepStrictEqual([own.status, own.json.code], [403, 1004])
      for (const body of [
        { vendor: "fal", bill: "id,model,date\n" },
        { vendor: "fal", bill: "id,model,date,amount\n" },
        { vendor: "fal", bill: `${bill}x,m,2026-01-01,1\n` },
        { vendor: "nobody", bill },
        { vendor: "fal" }
      ]) {
        const refused = yield* operator("POST", path, body)
        assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], refused.text)
      }
    })
  )
})
