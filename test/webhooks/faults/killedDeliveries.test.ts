import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const main = "test/support/crashingMain.ts"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const tasks = 12

interface Attempt {
  readonly seq: number
  readonly failure: string | null
  readonly status: number | null
  readonly due_at: string
  readonly started_at: string
}

interface Logged {
  readonly id: string
  readonly status: string
  readonly attempt_count: number
  readonly attempts: ReadonlyArray<Attempt>
}

/** Repeats the same create until it gets a response, however often the service is killed. */
const createSurely = (gateway: GatewayProcess, n: number) =>
  until<HttpResult>(
    () =>
      gateway
        .call("POST", path, { prompt: `${n}` }, { "idempotency-key": `create-${n}` })
        .catch(() => undefined),
    { what: "the response to a create", millis: 40_000 }
  )

/**
 * Tasks are created while the process is killed at each point in turn. Afterwards every event was received under one id
 * with one body, and its log shows the known state of each attempt.
 */
const scenario = async (points: ReadonlyArray<string>, databaseUrl?: string) => {
  await using receiver = await startReceiver()
  await using gateway = await GatewayProcess.start({
    main,
    env: { ...receiver.env, EMBEDDED_DURABLE: "false", WEBHOOK_CRASH: points[0] ?? "" },
    ...(databaseUrl === undefined ? {} : { databaseUrl })
  })
  const hook = { url: receiver.url, events: ["task.created"] }
  const made = await gateway.call("POST", "/manage/v1/webhook-endpoints", hook)
  assert.strictEqual(made.status, 201, made.text)
  const creating = Array.from({ length: tasks }, (_, n) => createSurely(gateway, n))
  for (const next of [...points.slice(1), ""]) {
    assert.strictEqual(await gateway.ended, "SIGKILL")
    gateway.env["WEBHOOK_CRASH"] = next
    const started = gateway.start()
    // Waiting deliveries may be sent, and the process killed, before it reports that it is ready
    await (next === "" ? started : started.catch(() => undefined))
  }
  const ids = (await Promise.all(creating)).map((it) => String(it.json.task_info.id))
  assert.strictEqual(new Set(ids).size, tasks)

  const taskOf = (it: (typeof receiver.received)[number]) => it.event.data.payload.task_info.id
  await until(() => new Set(receiver.received.map(taskOf)).size === tasks, {
    what: "every event",
    millis: 30_000
  })
  const log = await until<ReadonlyArray<Logged>>(
    async () => {
      const list = await gateway.call("GET", "/manage/v1/webhook-deliveries?limit=100")
      const rows: ReadonlyArray<Logged> = list.json.data
      return rows.every((row) => row.status === "succeeded") ? rows : undefined
    },
    { what: "the end of all deliveries", millis: 30_000 }
  )
  assert.strictEqual(log.length, tasks)
  let lost = 0
  let twice = 0
  for (const { id } of log) {
    const row: Logged = (await gateway.call("GET", `/manage/v1/webhook-deliveries/${id}`)).json
    const came = receiver.received.filter((it) => it.deliveryId === id)
    assert.strictEqual(new Set(came.map((it) => `${taskOf(it)} ${it.body}`)).size, 1, "one body")
    assert.deepStrictEqual(
      row.attempts.map((it) => it.seq),
      row.attempts.map((_, n) => n + 1)
    )
    const failures = row.attempts.map((it) => it.failure)
    assert.deepStrictEqual(failures, [...failures.slice(1).map(() => "lost"), null])
    assert.strictEqual(row.attempt_count, 1, "lost attempts are not counted")
    assert.isAtMost(came.length, row.attempts.length)
    for (const { due_at, started_at } of row.attempts) {
      assert.isAtLeast(Date.parse(started_at), Date.parse(due_at), "never early")
    }
    lost += failures.length - 1
    if (came.length > 1) twice += 1
  }
  const byDelivery = new Map(receiver.received.map((it) => [taskOf(it), it.deliveryId]))
  for (const it of receiver.received) assert.strictEqual(byDelivery.get(taskOf(it)), it.deliveryId)
  return { lost, twice }
}

describe("kill -9 during deliveries", () => {
  it("loses nothing, between claim and send or between the receiver's 2xx and the record: ids and bytes stay the same, and unknown attempts are `lost` and not counted", async () => {
    const { lost, twice } = await scenario(["before-send:5", "after-response:1"])
    assert.isAtLeast(lost, 2)
    assert.isAtLeast(twice, 1, "an attempt with a response but without a record is sent again")
  }, 180_000)

  it.live(
    "loses nothing on Postgres either, where the heartbeat shows the claims of the dead process",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        const { lost } = yield* Effect.promise(() => scenario(["before-send:5"], href))
        assert.isAtLeast(lost, 1)
      }),
    180_000
  )
})
