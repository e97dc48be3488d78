import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import * as Credits from "../../../domain/Credits.ts"
import { billItemsMax } from "../../../domain/limits/Limits.ts"
import type { Margin } from "../../../tasks/bills/BillReconciliation.ts"
import { Bills } from "../../../tasks/bills/Bills.ts"
import type { BillReport } from "../../../tasks/bills/Bills.ts"
import { requireOperator } from "../../server/access/Authentication.ts"

/** Comparison with vendors' bills. */
export const layer = HttpApiBuilder.group(
  Api,
  "reconciliations",
  Effect.fnUntraced(function* (handlers) {
    const bills = yield* Bills
    return handlers.handleAll({
      reconcileBill: Effect.fnUntraced(function* ({ payload }) {
        yield* requireOperator
        const bill = {
          provider: payload.vendor,
          csv: payload.bill,
          columns: payload.columns
        }
        return show(payload.vendor, yield* bills.reconcile(bill))
      })
    })
  })
)

const sumOf = (amounts: ReadonlyArray<Credits.Credits>) =>
  Credits.make(amounts.reduce((sum, amount) => sum + amount, 0n))

/** Lists a sample of the calls, but counts all of them. */
const unbought = ({ chargedNotBought: listed, unbilledCalls: calls }: BillReport) => {
  const tasks = listed.filter(({ taskId }) => taskId !== null)
  return {
    count: tasks.length + calls.count,
    charged: sumOf([calls.charged, ...tasks.map(({ charged }) => charged)]),
    data: listed.slice(0, billItemsMax).map(({ callId, charged, day, model, taskId }) => ({
      task_id: taskId,
      call_id: callId,
      model,
      day,
      charged
    }))
  }
}

const withMargin = <Of extends Margin>(of: Of) => ({
  ...of,
  margin: Credits.make(of.charged - of.billed)
})

/** Lists some of the models, but sums all of them. */
const margin = ({ margins }: BillReport) => {
  const models = margins.models()
  const billed = sumOf(models.map((it) => it.billed))
  const charged = sumOf(models.map((it) => it.charged))
  return {
    ...withMargin({ billed, charged }),
    models: models.slice(0, billItemsMax).map(withMargin),
    days: margins.days().map(withMargin)
  }
}

const show = (vendor: string, report: BillReport) => ({
  vendor,
  from: report.from,
  to: report.to,
  lines: report.lines,
  billed: report.billed,
  matched: report.matched,
  margin: margin(report),
  bought_not_charged: {
    count: report.boughtNotCharged.length,
    billed: sumOf(report.boughtNotCharged.map(({ line }) => line.amount)),
    data: report.boughtNotCharged.slice(0, billItemsMax).map(({ callId, line, taskId }) => ({
      id: line.id,
      model: line.model,
      day: line.day,
      billed: line.amount,
      task_id: taskId,
      call_id: callId
    }))
  },
  charged_not_bought: unbought(report),
  differences: report.differences.map(({ billed, charged, day, model }) => ({
    day,
    model,
    billed,
    charged,
    difference: Credits.make(charged - billed)
  }))
})
