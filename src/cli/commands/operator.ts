import { Effect, FileSystem, Option, Schema } from "effect"
import { Console } from "effect"
import { Command, Flag } from "effect/cli"
import { BillVendor } from "../../contract/manage/BillsApi.ts"
import { Management } from "../Management.ts"
import { namingFile } from "../terminal/Fault.ts"

const column = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("COLUMN"),
    Flag.withDescription(`The column of the ${name}, if it has another name`),
    Flag.optional
  )

/** docs/reference/reconciliation.md#command */
export const reconcile = Command.make(
  "reconcile",
  {
    vendor: Flag.String("vendor").pipe(
      Flag.withDescription("The vendor of the bill"),
      Flag.filterMap(
        Schema.decodeUnknownOption(BillVendor),
        (it) => `Expected ${BillVendor.literals.join(", ")}, got ${JSON.stringify(it)}`
      )
    ),
    file: Flag.File("file").pipe(Flag.withDescription("The bill as CSV")),
    id: column("id"),
    model: column("model"),
    date: column("date"),
    amount: column("amount")
  },
  Effect.fnUntraced(function* ({ file, vendor, ...columns }) {
    const api = yield* Management
    const files = yield* FileSystem.FileSystem
    const bill = yield* namingFile(file)(files.readFileString(file))
    const named = Object.fromEntries(
      Object.entries(columns).flatMap(([name, it]) => (Option.isSome(it) ? [[name, it.value]] : []))
    )
    const payload = { vendor, bill, columns: named }
    const report = yield* api.call("reconcileBill", { as: "operator", payload, timeout })
    yield* Console.log(JSON.stringify(report, null, 2))
  })
).pipe(
  Command.withDescription("Compare a vendor's bill with jobs and charges (operator)"),
  Command.provide(Management.layer)
)

/** The timeout in milliseconds. Long, because both commands may read years of data. */
const timeout = 10 * 60_000

/** docs/reference/usage.md#rebuild */
export const rebuildUsage = Command.make(
  "rebuild-usage",
  {
    from: Flag.String("from").pipe(
      Flag.withMetavar("DAY"),
      Flag.withDescription("Such as 2026-01-01")
    ),
    to: Flag.String("to").pipe(Flag.withMetavar("DAY"), Flag.withDescription("The last day")),
    user: Flag.String("user").pipe(
      Flag.withMetavar("USER_ID"),
      Flag.withDescription("Only for this user"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ from, to, user }) {
    const api = yield* Management
    const payload = { from, to, ...(Option.isSome(user) ? { user_id: user.value } : {}) }
    const report = yield* api.call("rebuildUsage", { as: "operator", payload, timeout })
    yield* Console.log(JSON.stringify(report, null, 2))
  })
).pipe(
  Command.withDescription("Rebuild the sums of usage from the ledger (operator)"),
  Command.provide(Management.layer)
)
