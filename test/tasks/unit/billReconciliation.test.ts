import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as Credits from "../../../src/domain/Credits.ts"
import { TaskId } from "../../../src/domain/Ids.ts"
import * as Bill from "../../../src/tasks/bills/Bill.ts"
import { billFormat } from "../../../src/tasks/bills/BillFormats.ts"
import { BillReconciliation } from "../../../src/tasks/bills/BillReconciliation.ts"

/** docs/reference/reconciliation.md#report */

const plain = billFormat("replicate")
const parseBill = (text: string, format: ReturnType<typeof billFormat>) =>
  Effect.runSync(Effect.result(Bill.parseBill(text, format)))
const read = (text: string) => Result.getOrThrow(parseBill(text, plain))
const task = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const job = (n: number, id: string, captured: number | null, model = "flux") => ({
  taskId: task(n),
  model,
  status: captured === null ? ("processing" as const) : ("completed" as const),
  captured: captured === null ? null : Credits.make(BigInt(captured)),
  handle: { getUrl: `https://api.example.com/v1/predictions/${id}`, submittedAtMillis: 5 }
})
const day = "2026-11-20"

describe("a vendor's bill", () => {
  it("is read as CSV in US dollars, from the columns that it has", () => {
    assert.deepStrictEqual(
      read(
        '\uFEFFdate,model,amount,id\r\n2026-11-20T23:59:59Z,"a ""b"", c",$0.0750000001,x1\r\n\r\n'
      ),
      [{ id: "x1", model: 'a "b", c', day, amount: Credits.make(7_500_000n) }]
    )
    const other = { id: "request_id", model: "endpoint", date: "time", amount: "cost_usd" }
    const mapped = parseBill("time,endpoint,cost_usd\n2026-11-20,m,-1\n", billFormat("fal", other))
    assert.deepStrictEqual(Result.getOrThrow(mapped), [
      { id: null, model: "m", day, amount: Credits.make(-100_000_000n) }
    ])
    for (const [text, fault] of [
      ["id,model,date\n", "The bill has no column amount"],
      ["model,date,amount\nm,2026-11-20,1e3\n", "Line 2: no amount in US dollars"],
      ["model,date,amount\nm,soon,1\n", "Line 2: no date"],
      // Lines that are refused rather than read as something else
      [
        'model,date,amount\na 7" screen,2026-11-20,1\nb 8" one,2026-11-20,2\n',
        "Line 2 is not valid CSV"
      ],
      ['model,date,amount\nm,2026-11-20,1\n"m,2026-11-20,2\n', "Line 3 is not valid CSV"],
      ["model,date,amount\nm, 2,2026-11-20,1\n", "Line 2: 4 cells instead of 3"]
    ] as const) {
      assert.deepStrictEqual(parseBill(text, plain), Result.fail(fault))
    }
  })

  // Headers and values as in the vendors' exports: docs/reference/vendors.md#bills
  const exports = {
    openai: {
      text: [
        "start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,quantity,line_item,project_id",
        '1795132800,1795219200,2026-11-20T00:00:00+00:00,2026-11-21T00:00:00+00:00,1.25e-05,usd,1,"gpt-4o-2024-08-06, input",p',
        '1795132800,1795219200,2026-11-20T00:00:00+00:00,2026-11-21T00:00:00+00:00,0.06,usd,1,"gpt-4o-2024-08-06, output",p'
      ],
      lines: [
        { id: null, model: "gpt-4o-2024-08-06", day, amount: Credits.make(1250n) },
        { id: null, model: "gpt-4o-2024-08-06", day, amount: Credits.make(6_000_000n) }
      ]
    },
    anthropic: {
      text: [
        "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type",
        "2026-11-20,Claude Haiku 4.5,Default,key,message,≤ 200k,input_no_cache,0.05,0.05,token"
      ],
      lines: [{ id: null, model: "claude-haiku-4-5", day, amount: Credits.make(5_000_000n) }]
    },
    fal: {
      text: [
        "request_id,endpoint_id,timestamp,output_units,unit_price,cost_subtotal,cost_discount,cost_total",
        "req-1,fal-ai/flux/dev,2026-11-20T10:00:00Z,1,0.025,0.025,0.005,0.02"
      ],
      lines: [{ id: "req-1", model: "fal-ai/flux/dev", day, amount: Credits.make(2_000_000n) }]
    },
    dashscope: {
      text: [
        "BillingCycle,BillingDate,ProductCode,InstanceID,PretaxGrossAmount,PretaxAmount,Currency",
        "2026-11,2026-11-20,sfm,12345;llm-1;qwen-max;output_token;app,0.02,0.01,USD"
      ],
      lines: [{ id: null, model: "qwen-max", day, amount: Credits.make(1_000_000n) }]
    }
  } as const
  for (const [vendor, { lines, text }] of Object.entries(exports)) {
    it(`is read as ${vendor} exports it, without naming columns`, () => {
      assert.deepStrictEqual(
        parseBill(text.join("\n"), billFormat(vendor)),
        Result.succeed(lines as never)
      )
    })
  }

  it("of OpenAI may have only Unix times, and given column names take precedence", () => {
    const text = "start_time,amount_value,line_item,cost\n1795132800,1,gpt-4o,2\n"
    assert.deepStrictEqual(
      parseBill(text, billFormat("openai", { amount: "cost" })),
      Result.succeed([{ id: null, model: "gpt-4o", day, amount: Credits.make(200_000_000n) }])
    )
    assert.deepStrictEqual(
      parseBill("usage_date_utc,model\n", billFormat("anthropic")),
      Result.fail("The bill has no column amount or cost_usd")
    )
  })

  it("has days in UTC, whatever the time zone of the service", () => {
    const zone = process.env["TZ"]
    process.env["TZ"] = "America/New_York"
    try {
      for (const time of [
        "2026-11-20",
        "2026-11-20 23:30:00",
        "2026-11-20T23:30",
        "2026-11-20 23:30:00.123 UTC",
        "2026-11-20T18:30:00-05:00",
        "2026-11-21T01:30:00+0200"
      ]) {
        const [line] = read(`model,date,amount\nm,${time},1\n`)
        assert.strictEqual(line?.day, day, time)
      }
    } finally {
      if (zone === undefined) delete process.env["TZ"]
      else process.env["TZ"] = zone
    }
  })

  it("shows jobs bought and not charged, jobs charged and not bought, and different prices", () => {
    const lines = read(
      [
        "id,model,date,amount",
        "same,f,2026-11-20,0.05",
        "dear,f,2026-11-20,0.07",
        "failed,f,2026-11-20,0.05",
        "refunded,f,2026-11-20,0",
        "unknown,f,2026-11-20,0.05",
        "running,f,2026-11-20,0.05"
      ].join("\n")
    )
    const bill = new BillReconciliation(lines)
    bill.add(job(1, "same", 5_000_000, "exact"), day, true)
    bill.add(job(2, "dear", 5_000_000), day, true)
    bill.add(job(3, "failed", 0), day, true)
    bill.add(job(4, "refunded", 0), day, true)
    bill.add(job(5, "running", null), day, true)
    bill.add(job(6, "unbilled", 5_000_000), day, true)
    bill.add(job(7, "free", 0), day, true)
    bill.add(job(8, "earlier", 5_000_000), "2026-11-19", false)
    // Two attempts of one task, of which the bill names one
    bill.add(job(2, "lost", 5_000_000), day, true)
    const report = bill.end()
    assert.strictEqual(report.matched, 5)
    // Without the running task, whose charge is unknown; the refund cost nothing
    const sums = report.margins
      .models()
      .map(({ billed, charged, model }) => [model, billed, charged])
    assert.deepStrictEqual(sums as unknown, [
      ["flux", 12_000_000n, 5_000_000n],
      ["exact", 5_000_000n, 5_000_000n],
      ["f", 5_000_000n, 0n]
    ])
    assert.deepStrictEqual(
      report.boughtNotCharged.map(({ line, taskId }) => [line.id, taskId]),
      [
        ["failed", task(3)],
        ["unknown", null]
      ]
    )
    assert.deepStrictEqual(
      report.chargedNotBought.map(({ taskId }) => taskId as string),
      [task(6)]
    )
    assert.deepStrictEqual(report.differences, [
      { day, model: "flux", billed: Credits.make(7_000_000n), charged: Credits.make(5_000_000n) }
    ])
  })
})
