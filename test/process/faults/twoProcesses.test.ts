import { Effect, Exit, Scope } from "effect"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const submitted = async (): Promise<number> => {
  const { rows } = await database.query<{ count: string }>(
    "SELECT count(*) FROM vendor_attempts WHERE state = 'submitted'"
  )
  return Number(rows[0]?.count)
}

const scope = Scope.makeUnsafe()
let database: Client
let receiver: Awaited<ReturnType<typeof startReceiver>>
let first: GatewayProcess
let second: GatewayProcess

beforeAll(async () => {
  const databaseUrl = (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
  database = new Client({ connectionString: databaseUrl })
  await database.connect()
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
  await database?.end()
  await receiver?.[Symbol.asyncDispose]()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

/** Ends the first process with the signal while both have tasks at the vendor. */
const scenario = async (signal: NodeJS.Signals, withinMillis: number) => {
  const settledBefore = Number((await second.call("GET", "/manage/v1/wallet")).json.settled_balance)
  const submittedBefore = await submitted()
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const prompt = `${n} [[sim:slow=4s]]`
      const created = await (n % 4 === 0 ? second : first).call("POST", path, { prompt })
      assert.strictEqual(created.status, 202, created.text)
      return String(created.json.task_info.id)
    })
  )
  // An earlier kill would leave it open whether a job was bought
  await until(async () => (await submitted()) === submittedBefore + ids.length)
  const tookToEnd = await first.kill(signal)
  if (signal === "SIGTERM") {
    assert.isBelow(tookToEnd, 3000)
    assert.strictEqual(await first.ended, 0, first.output)
  }
  const now = ownClock(second.pid)
  const began = now()
  const isCompleted = async (id: string) =>
    (await second.call("GET", `${path}/${id}`)).json.task_info.status === "completed"
  for (const id of ids) await until(() => isCompleted(id), { what: "the end of all tasks" })
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
  it("kill -9 of one: the other finishes all tasks, each once, within 20 seconds", () =>
    scenario("SIGKILL", 20_000))

  it("SIGTERM of one: it releases its tasks, and the other finishes all of them within 10 seconds", async () => {
    await first.start()
    await scenario("SIGTERM", 10_000)
  })
})
