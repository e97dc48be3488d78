import { Effect, Exit, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { layerPostgres } from "../../../src/db/Database.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const submitted = (databaseUrl: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`SELECT count(*)::int AS n FROM vendor_attempts WHERE state = 'submitted'`
  ).pipe(
    Effect.map(([row]) => Number(row?.["n"])),
    Effect.provide(layerPostgres({ url: Redacted.make(databaseUrl), maxConnections: 1 })),
    Effect.runPromise
  )

const scope = Scope.makeUnsafe()
let databaseUrl: string
let receiver: Awaited<ReturnType<typeof startReceiver>>
let first: GatewayProcess
let second: GatewayProcess

beforeAll(async () => {
  databaseUrl = (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
  receiver = await startReceiver()
  const options = { databaseUrl, env: receiver.env }
  first = await GatewayProcess.start(options)
  second = await GatewayProcess.start(options)
  second.useKey(await first.key())
  const events = ["task.created", "task.succeeded", "task.failed"]
  await first.call("POST", "/manage/v1/webhook-endpoints", { url: receiver.url, events })
}, 120_000)

afterAll(async () => {
  await Promise.all([first?.close(), second?.close()])
  await receiver?.[Symbol.asyncDispose]()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

/** Ends the first process by the signal while both have tasks at the vendor. */
const scenario = async (signal: NodeJS.Signals, withinMillis: number) => {
  const settledBefore = Number((await second.call("GET", "/manage/v1/wallet")).json.settled_balance)
  const submittedBefore = await submitted(databaseUrl)
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const prompt = `${n} [[sim:slow=4s]]`
      const created = await (n % 4 === 0 ? second : first).call("POST", path, { prompt })
      assert.strictEqual(created.status, 202, created.text)
      return String(created.json.task_info.id)
    })
  )
  // A kill before would leave it open whether a job was bought
  await until(async () => (await submitted(databaseUrl)) === submittedBefore + ids.length)
  const tookToEnd = await first.kill(signal)
  if (signal === "SIGTERM") {
    assert.isBelow(tookToEnd, 3000)
    assert.strictEqual(await first.ended, 0, first.output)
  }
  const now = ownClock(second.pid)
  const began = now()
  const unfinished = async () => {
    const answers = await Promise.all(ids.map((id) => second.call("GET", `${path}/${id}`)))
    return answers.filter((it) => it.json.task_info.status !== "completed")
  }
  await until(async () => (await unfinished()).length === 0, {
    what: `the end of all tasks`
  })
  assert.isBelow(now() - began, withinMillis)
  const outcomes = () =>
    new Set(
      receiver.received
        .filter((it) => it.event.type === "task.succeeded")
        .map((it) => it.event.data.payload.task_info.id)
        .filter((id) => ids.includes(id))
    ).size
  await until(() => outcomes() === ids.length, {
    millis: 20_000,
    what: "every webhook"
  })
  const wallet = (await second.call("GET", "/manage/v1/wallet")).json
  assert.strictEqual(wallet.held_balance, "0.00")
  assert.strictEqual(wallet.settled_balance, (settledBefore - 150).toFixed(2))
  assert.match((await second.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
}

describe("two processes on one Postgres", { timeout: 180_000 }, () => {
  it("kill -9 of one: the other finishes all, once, within 20 seconds", () =>
    scenario("SIGKILL", 20_000))

  it("SIGTERM of one: it releases its tasks, and the other finishes all within 10 seconds", async () => {
    await first.start()
    await scenario("SIGTERM", 10_000)
  })
})
