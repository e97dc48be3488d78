import { Context, DateTime, Effect, Layer, Stream } from "effect"
import * as Credits from "../../domain/Credits.ts"
import { billDaysMax, billItemsMax } from "../../domain/limits/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { UsageReport } from "../../wallet/UsageReport.ts"
import { parseBill } from "./Bill.ts"
import type { BillLine } from "./Bill.ts"
import { billFormat } from "./BillFormats.ts"
import { BillReconciliation } from "./BillReconciliation.ts"
import type { ChargedNotBought, PriceDifference, Reconciled } from "./BillReconciliation.ts"
import { BillStore } from "./BillStore.ts"

export interface Bill {
  readonly provider: string
  readonly csv: string
  /** Column names, if the bill uses neither this service's names nor the vendor's. */
  readonly columns: Parameters<typeof billFormat>[1]
}

export interface BillReport extends Reconciled {
  readonly lines: number
  /** The first and the last day of the bill. */
  readonly from: string
  readonly to: string
  readonly billed: Credits.Credits
  /** Totals of all charged calls missing from the bill; `chargedNotBought` lists some of them. */
  readonly unbilledCalls: { readonly count: number; readonly charged: Credits.Credits }
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

      /** For lines without an id: the amount charged for the line's model on its day. */
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
        return [...billed].map(([name, amount]): PriceDifference => {
          const [day, model] = [name.slice(0, 10), name.slice(11)]
          const paid = Credits.make(charged.get(name) ?? 0n)
          return { day, model, billed: Credits.make(amount), charged: paid }
        })
      })

      return Bills.of({
        reconcile: Effect.fn("Bills.reconcile")(function* ({ columns, csv, provider }) {
          const lines = yield* read(csv, billFormat(provider, columns))
          const [from, to] = daysOf(lines)
          if (from === undefined || to === undefined) return yield* fault("The bill has no lines")
          const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1
          if (days > billDaysMax) return yield* fault(`Expected at most ${billDaysMax} days`)
          const bill = new BillReconciliation(lines)
          let namesCalls = false
          // A job submitted the day before may have ended, and been billed, on the first day
          for (let n = -1; n < days; n += 1) {
            const day = dayAfter(from, n)
            for (const job of yield* store.jobs(provider, day)) bill.add(job, day, n >= 0)
            const named = idsAround(lines, day)
            if (named.length === 0) continue
            for (const call of yield* store.calls(provider, day, named)) {
              bill.addCall(call)
              namesCalls = true
            }
          }
          const others = namesCalls
            ? yield* unbilled(store, { provider, lines, from, days })
            : noCalls
          const report = bill.end()
          const unnamed = yield* byModel(lines.filter(({ id }) => id === null))
          for (const sum of unnamed) report.margins.add(sum)
          return {
            ...report,
            chargedNotBought: [...report.chargedNotBought, ...others.items],
            unbilledCalls: others,
            differences: [
              ...report.differences,
              ...unnamed.filter((it) => it.billed !== it.charged)
            ],
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

const read = (csv: string, format: ReturnType<typeof billFormat>) =>
  Effect.mapError(parseBill(csv, format), fault)

interface OtherCalls {
  readonly items: ReadonlyArray<ChargedNotBought>
  readonly count: number
  readonly charged: Credits.Credits
}

const noCalls: OtherCalls = { items: [], count: 0, charged: Credits.zero }

interface Days {
  readonly provider: string
  readonly lines: ReadonlyArray<BillLine>
  readonly from: string
  readonly days: number
}

/** Charged calls missing from the bill. Only a bill that names some calls is expected to name all calls of its days. */
const unbilled = Effect.fnUntraced(function* (
  store: BillStore["Service"],
  { days, from, lines, provider }: Days
): Effect.fn.Return<OtherCalls, StoreUnavailable> {
  const items: Array<ChargedNotBought> = []
  let [count, charged] = [0, 0n]
  for (let n = 0; n < days; n += 1) {
    const day = dayAfter(from, n)
    const ids = idsAround(lines, day)
    const found = yield* store.otherCalls(provider, day, ids, billItemsMax - items.length)
    count += found.count
    charged += found.charged
    for (const { callId, captured, model } of found.rows) {
      items.push({ taskId: null, callId, model, day, charged: captured })
    }
  }
  return { items, count, charged: Credits.make(charged) }
})

const dayAfter = (day: string, n: number): string =>
  DateTime.formatIsoDateUtc(DateTime.add(DateTime.makeUnsafe(day), { days: n }))

/** The ids of lines that may belong to a call of this day: lines dated the day before, that day or the day after. */
const idsAround = (lines: ReadonlyArray<BillLine>, day: string): ReadonlyArray<string> => {
  const [first, last] = [dayAfter(day, -1), dayAfter(day, 1)]
  return lines.flatMap((line) =>
    line.id !== null && line.day >= first && line.day <= last ? [line.id] : []
  )
}

/** The first and last day of the lines. */
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
