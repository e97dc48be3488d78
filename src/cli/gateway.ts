#!/usr/bin/env node
import { NodeRuntime } from "@effect/platform-node"
import { Console, Data, Effect } from "effect"
import { readFile } from "node:fs/promises"
import { parseArgs } from "node:util"

/**
 * The operator's commands: clients of the management API at `GATEWAY_URL` with `ADMIN_TOKEN`, and what works on
 * the store with the variables of the service.
 * docs/reference/reconciliation.md#command, docs/reference/usage.md#rebuild
 */
const usage = `gateway reconcile --vendor <vendor> --file <bill.csv> [--id <column>] [--model <column>] [--date <column>] [--amount <column>]
gateway rebuild-usage --from <day> --to <day> [--user <id>]
gateway rotate-master-key`

class CommandFault extends Data.TaggedError("CommandFault")<{ readonly message: string }> {}

const fault = (message: string) => new CommandFault({ message })

const text = { type: "string" } as const
const options = {
  vendor: text,
  file: text,
  id: text,
  model: text,
  date: text,
  amount: text,
  from: text,
  to: text,
  user: text
}

const attempt = <A>(message: string, promise: () => Promise<A>) =>
  Effect.tryPromise({
    try: promise,
    catch: (cause) => fault(`${message}: ${cause instanceof Error ? cause.message : "failed"}`)
  })

const post = Effect.fnUntraced(function* (path: string, body: unknown) {
  const { env } = globalThis.process
  const token = env["ADMIN_TOKEN"]
  if (token === undefined) return yield* fault("Set ADMIN_TOKEN")
  const base = env["GATEWAY_URL"] ?? `http://127.0.0.1:${env["PORT"] ?? "8080"}`
  const [status, answer] = yield* attempt(base, async () => {
    const response = await fetch(new URL(path, base), {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    return [response.status, await response.text()] as const
  })
  if (status !== 200) return yield* fault(`${path} returned ${status}: ${answer}`)
  yield* Console.log(answer)
})

const command = Effect.gen(function* () {
  const { positionals, values } = yield* Effect.try({
    try: () => parseArgs({ options, allowPositionals: true }),
    catch: () => fault(usage)
  })
  const { amount, date, file, from, id, model, to, user: user_id, vendor } = values
  switch (positionals.join(" ")) {
    case "reconcile": {
      if (vendor === undefined || file === undefined) return yield* fault(usage)
      const bill = yield* attempt(file, () => readFile(file, "utf8"))
      return yield* post("/manage/v1/reconciliations", {
        vendor,
        bill,
        columns: { id, model, date, amount }
      })
    }
    case "rebuild-usage":
      return yield* post("/manage/v1/usage/rebuild", { from, to, user_id })
    case "rotate-master-key": {
      // The only one that opens the store
      const { rotateMasterKey } = yield* Effect.promise(
        () => import("./commands/rotateMasterKey.ts")
      )
      return yield* rotateMasterKey
    }
    default:
      return yield* fault(usage)
  }
})

NodeRuntime.runMain(
  Effect.tapError(command, ({ message }) => Console.error(message)),
  {
    disableErrorReporting: true
  }
)
