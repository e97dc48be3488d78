import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import * as Credits from "../../../domain/Credits.ts"
import { billItemsMax } from "../../../domain/Limits.ts"
import { Bills } from "../../../tasks/bills/Bills.ts"
import type { BillReport } from "../../../tasks/bills/Bills.ts"
import { requireOperator } from "../../server/Authentication.ts"
import { Api } from "../Api.ts"

const columns = { id: "id", model: "model", date: "date", amount: "amount" }

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
          columns: { ...columns, ...payload.columns }
        }
        return show(payload.vendor, yield* bills.reconcile(bill))
      })
    })
  })
)

const sumOf = (amounts: ReadonlyArray<Credits.Credits>) =>
  Credits.make(amounts.reduce((sum, amount) => sum + amount, 0n))

const show = (vendor: string, report: BillReport) => ({
  vendor,
  from: report.from,
  to: report.to,
  lines: report.lines,
  billed: report.billed,
  matched: report.matched,
  bought_not_charged: {
    count: report.boughtNotCharged.length,
    billed: sumOf(report.boughtNotCharged.map(({ line }) => line.amount)),
    data: report.boughtNotCharged.slice(0, billItemsMax).map(({ line, taskId }) => ({
      id: line.id,
      model: line.model,
      day: line.day,
      billed: line.amount,
      task_id: taskId
    }))
  },
  charged_not_bought: {
    count: report.chargedNotBought.length,
    charged: sumOf(report.chargedNotBought.map(({ charged }) => charged)),
    data: report.chargedNotBought.slice(0, billItemsMax).map(({ charged, day, model, taskId }) => ({
      task_id: taskId,
      model,
      day,
      charged
    }))
  },
  differences: report.differences.map(({ billed, charged, day, model }) => ({
    day,
    model,
    billed,
    charged,
    difference: Credits.make(charged - billed)
  }))
})
