import { Clock, Effect, Option, Redacted, Schedule } from "effect"
import { isTerminal } from "../../domain/task/Task.ts"
import type { TaskResult, TaskStatus } from "../../domain/task/Task.ts"
import type { CommandFault } from "../terminal/Fault.ts"
import { Client } from "./Client.ts"
import { inspect } from "./Media.ts"
import { models, refused } from "./Models.ts"
import type { Model } from "./Models.ts"
import { startReceiver } from "./Receiver.ts"
import type { Received, Receiver } from "./Receiver.ts"
import { Report } from "./Report.ts"
import type { Target } from "./Target.ts"
import { cents, showLedger, showWallet } from "./Wallet.ts"

const creditsOfDemo = "1000.00"
const pollEvery = "200 millis"
const taskTimeout = "3 minutes"
/** How long to wait for a webhook. They are sent at once, so a longer wait would not help. */
const webhookMillis = 5000

interface FinishedTask {
  readonly model: Model
  readonly id: string
  readonly cost: string
  readonly result: TaskResult
}

/** Runs all steps; each expectation becomes a check of the report. */
export const runScenario = Effect.fn("Demo.runScenario")(function* (target: Target) {
  const report = yield* Report
  const client = yield* Client

  yield* report.heading("1. A customer")
  const key = yield* apiKeyOf(target)
  const before = yield* client.wallet(key)
  yield* showWallet("Wallet before", before)

  yield* report.heading("2. A webhook endpoint")
  const receiver = yield* startReceiver(target.certificate, target.serviceName)
  yield* Effect.acquireRelease(client.registerEndpoint(key, receiver.url), ({ id }) =>
    Effect.ignore(client.removeEndpoint(key, id))
  ).pipe(
    Effect.tap(({ id, secret }) => {
      receiver.useSecret(secret)
      return report.print(`${id} at ${receiver.url}, with its own secret`)
    })
  )
  yield* report.check("the https receiver is registered as a webhook endpoint", true)

  yield* report.heading("3. A task of each of the five models")
  const finished = yield* Effect.forEach(models(), (model) => runTask(key, model, receiver), {
    concurrency: "unbounded"
  })
  yield* report.heading("4. The results")
  yield* Effect.forEach(finished, checkResult, { discard: true })
  yield* report.heading("5. The webhooks")
  yield* Effect.forEach(finished, (it) => checkWebhooks(receiver, it, "task.succeeded"), {
    discard: true
  })

  yield* report.heading("6. A task that fails")
  const failed = yield* runTask(key, refused, receiver)
  const error = failed.result.task_info.error
  yield* report.print(
    `error ${error?.code ?? "none"}: ${error?.title ?? ""}. ${error?.detail ?? ""}`
  )
  yield* report.check("the refused task failed with code 3001", error?.code === 3001)
  yield* checkWebhooks(receiver, failed, "task.failed")

  yield* report.heading("7. The wallet afterward")
  const after = yield* client.wallet(key)
  yield* showWallet("Wallet after", after)
  yield* showLedger(yield* client.entries(key), [...finished, failed])
  const spent = finished.reduce((sum, it) => sum + cents(it.cost), 0n)
  yield* report.check(
    "the wallet paid exactly for the five tasks",
    cents(before.settled_balance) - cents(after.settled_balance) === spent
  )
  yield* report.check(
    "no hold is left open",
    after.held_balance === before.held_balance,
    `held ${after.held_balance}`
  )
})

/** The given key, or that of a new user. */
const apiKeyOf = Effect.fnUntraced(function* (target: Target) {
  const report = yield* Report
  const client = yield* Client
  const { access } = target
  if ("apiKey" in access) {
    yield* report.print("Uses the given API key")
    return Redacted.value(access.apiKey)
  }
  const name = `demo-${yield* Clock.currentTimeMillis}`
  const key = yield* client.makeUser(Redacted.value(access.operatorToken), name, creditsOfDemo)
  yield* report.print(`Created the user ${name}@localhost, ${creditsOfDemo} credits and an API key`)
  return key
})

/** Creates a task and polls it until it has ended. Prints each new status. */
const runTask = Effect.fnUntraced(function* (key: string, model: Model, receiver: Receiver) {
  const report = yield* Report
  const client = yield* Client
  const started = yield* Clock.currentTimeMillis
  const statuses: Array<TaskStatus> = []
  const moved = Effect.fnUntraced(function* (status: TaskStatus, more = "") {
    if (statuses.includes(status)) return
    statuses.push(status)
    const seconds = (((yield* Clock.currentTimeMillis) - started) / 1000).toFixed(1)
    yield* report.print(`${seconds.padStart(5)} s  ${model.name.padEnd(23)} ${status}${more}`)
  })
  const { cost: held, id } = yield* client.create(key, model)
  const poll: Effect.Effect<TaskResult, CommandFault> = client.get(key, model, id)
  yield* report.print(`${" ".repeat(9)}${model.name.padEnd(23)} accepted, ${held} credits held`)
  const result = yield* poll.pipe(
    Effect.tap(({ task_info: task }) => moved(task.status)),
    Effect.repeat({
      until: ({ task_info: task }) => isTerminal(task.status),
      schedule: Schedule.spaced(pollEvery)
    }),
    Effect.timeoutOption(taskTimeout)
  )
  // The first GET may be too late to see `pending`, but the event of the create contains it
  const created = yield* waitFor(
    () => find(receiver, id, "task.created"),
    statuses[0] === "pending" ? 0 : webhookMillis
  )
  if (created?.event.data.payload.task_info.status === "pending") statuses.push("pending")
  const last = yield* Option.match(result, { onNone: () => poll, onSome: Effect.succeed })
  const expectedStatuses = model.outcome === "completed" ? stages : (["pending", "failed"] as const)
  for (const status of expectedStatuses) {
    yield* report.check(
      `${model.title} was ${status}`,
      statuses.includes(status),
      `it was ${statuses.join(", ")}; ${last.task_info.error?.detail ?? ""}`
    )
  }
  const finished: FinishedTask = { model, id, cost: held, result: last }
  return finished
})

const stages = ["pending", "processing", "completed"] as const

const find = (receiver: Receiver, id: string, type: string): Received | undefined =>
  receiver.of(id).find((it) => it.event.type === type)

/** The value as soon as `read` returns one, `undefined` after the timeout. */
const waitFor = <A>(read: () => A | undefined, millis: number): Effect.Effect<A | undefined> =>
  Effect.suspend(() => {
    const found = read()
    if (found !== undefined || millis <= 0) return Effect.succeed(found)
    return Effect.andThen(Effect.sleep(checkEveryMillis), waitFor(read, millis - checkEveryMillis))
  })

const checkEveryMillis = 50

/** Downloads and inspects every result. */
const checkResult = Effect.fnUntraced(function* ({ model, result }: FinishedTask) {
  const report = yield* Report
  const client = yield* Client
  const urls = result[model.result] ?? []
  const { expected } = model
  const wanted = `${expected.format} ${expected.width}x${expected.height}`
  const found = yield* Effect.forEach(urls, (url) =>
    Effect.map(client.download(url), (bytes) => ({ url, bytes, medium: inspect(bytes) }))
  )
  for (const { bytes, medium, url } of found) {
    const seconds = medium?.seconds === undefined ? "" : `, ${medium.seconds.toFixed(2)} s`
    const what =
      medium === undefined ? "unknown format" : `${medium.format} ${medium.width}x${medium.height}`
    yield* report.print(`${model.name.padEnd(23)} ${what}${seconds}, ${bytes.length} bytes`)
    yield* report.print(`    ${url}`)
  }
  const real = found.filter(
    ({ medium }) =>
      medium?.format === expected.format &&
      medium.width === expected.width &&
      medium.height === expected.height &&
      Math.abs((medium.seconds ?? 0) - (expected.seconds ?? 0)) < 0.5
  )
  const length = expected.seconds === undefined ? "" : ` of ${expected.seconds} s`
  yield* report.check(
    `${model.title} made ${model.count} real ${wanted}${length}`,
    urls.length === model.count && real.length === model.count,
    `${real.length} of ${urls.length} results match`
  )
})

/** Checks that both webhooks of a task arrived, are signed, and are refused if one byte changes. */
const checkWebhooks = Effect.fnUntraced(function* (
  receiver: Receiver,
  { id, model, result }: FinishedTask,
  outcome: "task.succeeded" | "task.failed"
) {
  const report = yield* Report
  for (const type of ["task.created", outcome]) {
    const webhook = yield* waitFor(() => find(receiver, id, type), webhookMillis)
    const verdict =
      webhook === undefined
        ? "did not arrive"
        : webhook.verified.valid
          ? "signature valid"
          : `signature refused: ${webhook.verified.reason}`
    yield* report.print(`${model.name.padEnd(23)} ${type.padEnd(15)} ${verdict}`)
    yield* report.check(
      `${type} of ${model.title} arrived, its signature valid`,
      webhook?.verified.valid === true && !webhook.tampered.valid,
      verdict
    )
    if (type !== outcome) continue
    const payload = JSON.stringify(webhook?.event.data.payload)
    yield* report.check(
      `${type} of ${model.title} equals the response of GET`,
      payload === JSON.stringify(result)
    )
  }
})
