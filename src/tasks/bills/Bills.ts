import { Context, DateTime, Effect, Layer, Stream } from "effect"
import * as Credits from "../../domain/Credits.ts"
import { billDaysMax } from "../../domain/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { UsageReport } from "../../wallet/UsageReport.ts"
import { parseBill } from "./Bill.ts"
import type { BillColumns, BillLine } from "./Bill.ts"
import { BillReconciliation } from "./BillReconciliation.ts"
import type { PriceDifference, Reconciled } from "./BillReconciliation.ts"
import { BillStore } from "./BillStore.ts"

export interface Bill {
  readonly provider: string
  readonly csv: string
  readonly columns: BillColumns
}

export interface BillReport extends Reconciled {
  readonly lines: number
  /** The first and the last day of the bill. */
  readonly from: string
  readonly to: string
  readonly billed: Credits.Credits
}

/** Compares vendors' bills with what was bought and charged. docs/reference/reconciliation.md */
export class Bills extends Context.Service<
  Bills,
  {
    /** Fails with 2001 when the bill cannot be read. */
    readonly reconcile: (bill: Bill) => Effect.Effect<BillReport, Problem | StoreUnavailable>
  }
>()("gateway/tasks/Bills") {
  static readonly layer = Layer.effect(
    Bills,
    Effect.gen(function* () {
      const store = yield* BillStore
      const usage = yield* UsageReport

      /** Lines without an id: what their model was charged on that day. */
      const byModel = Effect.fnUntraced(function* (lines: ReadonlyArray<BillLine>) {
        const [from, to] = daysOf(lines)
        if (from === undefined || to === undefined) return []
        const billed = new Map<string, bigint>()
        for (const { amount, day, model } of lines) {
          const name = `${day} ${model}`
          billed.set(name, (billed.get(name) ?? 0n) + amount)
        }
        const charged = new Map<string, bigint>()
        yield* Stream.runForEach(
          usage.all({ from, to, groups: ["day", "model"], sandbox: false }),
          ({ credits, group }) => Effect.sync(() => charged.set(group.join(" "), credits))
        )
        return [...billed].flatMap(([name, amount]): ReadonlyArray<PriceDifference> => {
          const paid = charged.get(name) ?? 0n
          if (paid === amount) return []
          const [day, model] = [name.slice(0, 10), name.slice(11)]
          return [{ day, model, billed: Credits.make(amount), charged: Credits.make(paid) }]
        })
      })

      return Bills.of({
        reconcile: Effect.fn("Bills.reconcile")(function* ({ columns, csv, provider }) {
          const lines = yield* read(csv, columns)
          const [from, to] = daysOf(lines)
          if (from === undefined || to === undefined) return yield* fault("The bill has no lines")
          const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1
          if (days > billDaysMax) return yield* fault(`Expected at most ${billDaysMax} days`)
          const bill = new BillReconciliation(lines)
          // A job of the day before may have ended, and been billed, on the first day
          for (let n = -1; n < days; n += 1) {
            const day = DateTime.formatIsoDateUtc(
              DateTime.add(DateTime.makeUnsafe(from), { days: n })
            )
            for (const job of yield* store.jobs(provider, day)) bill.add(job, day, n >= 0)
          }
          const report = bill.end()
          const unnamed = yield* byModel(lines.filter(({ id }) => id === null))
          return {
            ...report,
            differences: [...report.differences, ...unnamed],
            lines: lines.length,
            from,
            to,
            billed: Credits.make(lines.reduce((sum, { amount }) => sum + amount, 0n))
          }
        })
      })
    })
  ).pipe(Layer.provide(BillStore.layer))
}

const fault = (detail: string) => invalid([{ pointer: "#/bill", detail }])

const read = (csv: string, columns: BillColumns) =>
  Effect.mapError(Effect.fromResult(parseBill(csv, columns)), fault)

/** The first and the last day of some lines. */
const daysOf = (
  lines: ReadonlyArray<BillLine>
): readonly [from: string | undefined, to: string | undefined] => {
  let [from, to]: [string | undefined, string | undefined] = [undefined, undefined]
  for (const { day } of lines) {
    if (from === undefined || day < from) from = day
    if (to === undefined || day > to) to = day
  }
  return [from, to]
}
