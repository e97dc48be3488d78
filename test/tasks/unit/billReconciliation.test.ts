import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Credits from "../../../src/domain/Credits.ts"
import { TaskId } from "../../../src/domain/Ids.ts"
import { parseBill } from "../../../src/tasks/bills/Bill.ts"
import { BillReconciliation } from "../../../src/tasks/bills/BillReconciliation.ts"

/** docs/reference/reconciliation.md#report */

const columns = { id: "id", model: "model", date: "date", amount: "amount" }
const read = (text: string) => Result.getOrThrow(parseBill(text, columns))
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
  it("is read as CSV in US dollars, with the columns that it has", () => {
    assert.deepStrictEqual(
      read(
        '\uFEFFdate,model,amount,id\r\n2026-11-20T23:59:59Z,"a ""b"", c",$0.0750000001,x1\r\n\r\n'
      ),
      [{ id: "x1", model: 'a "b", c', day, amount: Credits.make(7_500_000n) }]
    )
    const other = { id: "request_id", model: "endpoint", date: "time", amount: "cost_usd" }
    const mapped = parseBill("time,endpoint,cost_usd\n2026-11-20,m,-1\n", other)
    assert.deepStrictEqual(Result.getOrThrow(mapped), [
      { id: null, model: "m", day, amount: Credits.make(-100_000_000n) }
    ])
    for (const [text, fault] of [
      ["id,model,date\n", "The bill has no column amount"],
      ["model,date,amount\nm,2026-11-20,1e3\n", "Line 2: no amount in US dollars"],
      ["model,date,amount\nm,soon,1\n", "Line 2: no date"],
      // Not lines that are read as others
      ['model,date,amount\na 7" screen,2026-11-20,1\nb 8" one,2026-11-20,2\n', "Line 2: no CSV"],
      ['model,date,amount\nm,2026-11-20,1\n"m,2026-11-20,2\n', "Line 3: no CSV"],
      ["model,date,amount\nm, 2,2026-11-20,1\n", "Line 2: 4 cells, and not 3"]
    ] as const) {
      assert.deepStrictEqual(parseBill(text, columns), Result.fail(fault))
    }
  })

  it("has days in UTC, wherever the service runs", () => {
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

  it("shows what was bought and not charged, charged and not bought, and prices that differ", () => {
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
    // Two attempts of one task: the bill names one
    bill.add(job(2, "lost", 5_000_000), day, true)
    const report = bill.end()
    assert.strictEqual(report.matched, 5)
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
