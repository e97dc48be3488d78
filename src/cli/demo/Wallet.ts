import { Effect } from "effect"
import type { Entry, Wallet } from "./Client.ts"
import { Report } from "./Report.ts"

/** Parses an amount such as `7.50` into hundredths. */
export const cents = (amount: string): bigint => BigInt(amount.replace(".", ""))

export const showWallet = (title: string, wallet: Wallet) =>
  Effect.flatMap(Report, (report) =>
    report.print(
      `${title}: ${wallet.available_balance} available, ${wallet.settled_balance} settled, ${wallet.held_balance} held`
    )
  )

interface PricedTask {
  readonly id: string
  readonly cost: string
  readonly model: { readonly name: string; readonly title: string }
  readonly result: { readonly task_info: { readonly status: string } }
}

/** Prints the ledger and checks that each hold was captured or released. */
export const showLedger = Effect.fn("Demo.showLedger")(function* (
  newestFirst: ReadonlyArray<Entry>,
  tasks: ReadonlyArray<PricedTask>
) {
  const report = yield* Report
  const nameOf = (id: string | null) => tasks.find((it) => it.id === id)?.model.title ?? ""
  yield* report.print(" seq  kind            amount   settled      held  task")
  for (const entry of newestFirst.toReversed()) {
    const columns = [
      String(entry.seq).padStart(4),
      entry.kind.padEnd(10),
      entry.amount.padStart(11),
      entry.settled_after.padStart(9),
      entry.held_after.padStart(9),
      nameOf(entry.task_id)
    ]
    yield* report.print(columns.join(" "))
  }
  for (const task of tasks) {
    const rows = newestFirst
      .filter((it) => it.task_id === task.id)
      .map((it) => `${it.kind} ${it.amount}`)
      .toReversed()
    const isPaid = task.result.task_info.status === "completed"
    const expected = [`hold ${task.cost}`, `${isPaid ? "capture" : "release"} ${task.cost}`]
    yield* report.check(
      isPaid
        ? `the ledger has hold and capture of ${task.cost} for ${task.model.title}`
        : `the failed task's hold of ${task.cost} was released`,
      rows.join(", ") === expected.join(", "),
      rows.join(", ")
    )
  }
})
