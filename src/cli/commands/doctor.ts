import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { HttpClient } from "effect/http"
import { health, readiness } from "../../contract/ServiceApi.ts"
import { finding } from "../doctor/Finding.ts"
import type { Finding } from "../doctor/Finding.ts"
import { Management } from "../Management.ts"
import type { Caller } from "../Management.ts"
import { CommandFault } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"
import { plain } from "../terminal/Table.ts"

const say = finding("service")

/** The timeout of each response in milliseconds. Short, because the doctor is used when services hang. */
const timeout = 10_000

/** The problem of a key without the scope of a route. docs/reference/errors.md#problem-codes */
const isForbidden = Schema.is(Schema.Struct({ code: Schema.Literal(1004) }))

/** Checks that the service runs and accepts the given credentials. */
const serviceFindings = Effect.gen(function* () {
  const api = yield* Management
  const http = yield* HttpClient.HttpClient
  const isThere = (path: string) =>
    http.get(`${api.url}${path}`).pipe(
      Effect.timeout(timeout),
      Effect.map(({ status }) => status === 200),
      Effect.orElseSucceed(() => false)
    )
  if (!(yield* isThere(health.path))) {
    return [say("skipped", `nothing responds at ${api.url}: the service is not running there`)]
  }
  const accepts = (as: Caller, name: string, operation: "getWallet" | "getQueues") =>
    api.call(operation, { as, timeout }).pipe(
      Effect.as(finding("keys")("ok", `${name} is accepted`)),
      Effect.catch(({ code, message, problem, remedy }) =>
        Effect.succeed(
          code === 2
            ? finding("keys")("skipped", `${name} is not set`)
            : isForbidden(problem)
              ? finding("keys")(
                  "warning",
                  `${name} is accepted, but lacks the scope manage`,
                  "Use a key with this scope for the commands of a user"
                )
              : finding("keys")("broken", `${name}: ${message}`, remedy ?? null)
        )
      )
    )
  const isReady = yield* isThere(readiness.path)
  return [
    isReady
      ? say("ok", `${api.url} is running and ready`)
      : say(
          "broken",
          `${api.url} is running but not ready`,
          "See its log; it is not ready while the store is unavailable and while it stops"
        ),
    yield* accepts("user", "GATEWAY_API_KEY", "getWallet"),
    yield* accepts("operator", "ADMIN_TOKEN", "getQueues")
  ]
})

const signs = { ok: "ok", warning: "!!", broken: "XX", skipped: "--" } as const

const textOf = ({ check, detail, remedy, status }: Finding): string =>
  `${signs[status]}  ${check.padEnd(15)}${plain(detail)}${remedy === null ? "" : `\n${" ".repeat(19)}Remedy: ${plain(remedy)}`}`

/** docs/cli.md#doctor */
export const doctor = Command.make(
  "doctor",
  {},
  Effect.fnUntraced(function* () {
    const { diagnose } = yield* Effect.promise(() => import("../doctor/Doctor.ts"))
    const [own, service] = yield* Effect.all([diagnose, serviceFindings], { concurrency: 2 })
    const findings = [...own, ...service]
    const broken = findings.filter(({ status }) => status === "broken").length
    const document = { healthy: broken === 0, findings: findings.map((it) => ({ ...it })) }
    yield* print(document, findings.map(textOf).join("\n"))
    if (broken > 0) {
      return yield* new CommandFault({
        message: broken === 1 ? "1 check failed" : `${broken} checks failed`,
        isPrinted: true
      })
    }
  })
).pipe(
  Command.withDescription(
    "Check configuration, store, clock, vendors, keys and models, and say what to do"
  ),
  Command.provide(Management.layer)
)
