import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { layerPostgres } from "../../../src/db/Database.ts"
import { mostWithin, queueDeliveries } from "../../support/deliveries.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const endpoints = "/manage/v1/webhook-endpoints"
/** A process without a heartbeat for 10 s counts as dead. */
const beyondLease = 13_000

const signal = (gateway: GatewayProcess, name: NodeJS.Signals) =>
  process.kill(gateway.pid ?? 0, name)

const makeEndpoint = async (gateway: GatewayProcess, url: string) => {
  const made = await gateway.call("POST", endpoints, { url, events: ["task.created"] })
  assert.strictEqual(made.status, 201, made.text)
  return String(made.json.id)
}

const queue = (databaseUrl: string, endpointId: string, count: number) =>
  queueDeliveries(endpointId, count, new Date()).pipe(
    Effect.provide(layerPostgres({ url: Redacted.make(databaseUrl), maxConnections: 1 })),
    Effect.runPromise
  )

const idsOf = (
  databaseUrl: string,
  text: (sql: SqlClient.SqlClient) => Effect.Effect<ReadonlyArray<{ readonly id: string }>, unknown>
) =>
  Effect.flatMap(SqlClient.SqlClient, text).pipe(
    Effect.map((rows) => rows.map(({ id }) => id)),
    Effect.provide(layerPostgres({ url: Redacted.make(databaseUrl), maxConnections: 1 })),
    Effect.runPromise
  )

const processIds = (databaseUrl: string) =>
  idsOf(databaseUrl, (sql) => sql`SELECT id FROM processes`)

/** The processes with running attempts. */
const owners = (databaseUrl: string) =>
  idsOf(
    databaseUrl,
    (sql) => sql`SELECT DISTINCT owner AS id FROM delivery_queue WHERE owner IS NOT NULL`
  )

describe.concurrent("a process paused by SIGSTOP for longer than its lease", () => {
  it("alone records its running attempt when it continues, and does not send it again", async () => {
    let answer = () => {}
    const answered = new Promise<number>((resolve) => (answer = () => resolve(200)))
    await using receiver = await startReceiver(() => answered)
    await using gateway = await GatewayProcess.start({
      env: { ...receiver.env, EMBEDDED_DURABLE: "false" }
    })
    const id = await makeEndpoint(gateway, receiver.url)
    const test = await gateway.call("POST", `${endpoints}/${id}/test`)
    await until(() => receiver.received.length === 1)
    signal(gateway, "SIGSTOP")
    await pause(beyondLease)
    signal(gateway, "SIGCONT")
    // Longer than the rescuer and the delivery scheduler would need to send it again
    await pause(7500)
    answer()
    const log = await until(async () => {
      const now = await gateway.call(
        "GET",
        `/manage/v1/webhook-deliveries/${test.json.delivery_id}`
      )
      return now.json.status === "succeeded" ? now.json : undefined
    })
    assert.strictEqual(receiver.received.length, 1)
    assert.deepStrictEqual([log.attempts.length, log.attempts[0].failure], [1, null])
  }, 180_000)

  it.live(
    "beside another loses nothing: only running attempts arrive twice, with the same id and bytes, and 600 a minute is the limit of both together",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        yield* Effect.promise(() => besideAnother(href))
      }),
    180_000
  )
})

describe.concurrent("a process whose clock is changed", () => {
  it("back and forth sends no attempt before its due time, and none twice", async () => {
    await using receiver = await startReceiver((_one, before) => (before.length < 2 ? 500 : 200))
    await using gateway = await GatewayProcess.start({
      env: {
        ...receiver.env,
        NODE_OPTIONS: "--import=./test/support/clockJump.ts",
        EMBEDDED_DURABLE: "false",
        CLOCK_JUMPS: "-4000,60000"
      }
    })
    const id = await makeEndpoint(gateway, receiver.url)
    const test = await gateway.call("POST", `${endpoints}/${id}/test`)
    const log = async () =>
      (await gateway.call("GET", `/manage/v1/webhook-deliveries/${test.json.delivery_id}`)).json
    const failedAttempts = async (n: number) =>
      (await log()).status === "pending" && (await log()).attempt_count === n ? true : undefined
    await until(() => failedAttempts(1))
    signal(gateway, "SIGUSR2")
    await until(() => failedAttempts(2), { millis: 40_000 })
    const [first, second] = receiver.received.map((it) => it.atMillis)
    assert.isAtLeast(Number(second) - Number(first), 19_000, "15 s of a clock that lost four")
    signal(gateway, "SIGUSR2")
    const shown = await until(async () => {
      const now = await log()
      return now.status === "succeeded" ? now : undefined
    })
    assert.strictEqual(receiver.received.length, 3)
    const attempts: ReadonlyArray<{
      readonly due_at: string
      readonly ended_at: string
      readonly lateness_ms: number
    }> = shown.attempts
    assert.deepStrictEqual(
      attempts
        .slice(1)
        .map((it, n) => Date.parse(it.due_at) - Date.parse(attempts[n]?.ended_at ?? "")),
      [15_000, 60_000]
    )
    for (const { lateness_ms } of attempts) assert.isAtLeast(lateness_ms, 0)
  }, 180_000)
})

/** Below the limit, so that nothing has to wait for a slot. */
const events = 400

const besideAnother = async (databaseUrl: string) => {
  const heldUp: Array<() => void> = []
  let isHolding = false
  await using receiver = await startReceiver(() =>
    isHolding
      ? new Promise<number>((resolve) => heldUp.push(() => resolve(200)))
      : new Promise<number>((resolve) => setTimeout(() => resolve(200), 10))
  )
  const options = { databaseUrl, env: receiver.env }
  await using first = await GatewayProcess.start(options)
  const [firstId] = await processIds(databaseUrl)
  await using second = await GatewayProcess.start(options)
  second.useKey(await first.key())
  const id = await makeEndpoint(first, receiver.url)
  await queue(databaseUrl, id, events)
  await until(() => receiver.received.length >= 100)
  isHolding = true
  await until(() => heldUp.length === 16, { what: "16 attempts" })
  // It stops with running attempts, whose responses it reads when it continues
  const isOfFirst = (await owners(databaseUrl)).includes(String(firstId))
  const [paused, other] = isOfFirst ? [first, second] : [second, first]
  const count = async (status: string) => {
    let found = 0
    let cursor = ""
    do {
      const query = `endpoint_id=${id}&status=${status}&limit=100${cursor}`
      const page = (await other.call("GET", `/manage/v1/webhook-deliveries?${query}`)).json
      found += page.data.length
      cursor = page.next_cursor === null ? "" : `&cursor=${page.next_cursor}`
    } while (cursor !== "")
    return found
  }
  const release = () => {
    isHolding = false
    for (const answer of heldUp.splice(0)) answer()
  }
  signal(paused, "SIGSTOP")
  release()
  await pause(beyondLease)
  await until(async () => (await count("succeeded")) === events, {
    what: "all deliveries by the other process",
    millis: 30_000
  })
  signal(paused, "SIGCONT")

  const bodies = new Map<string, Set<string>>()
  for (const one of receiver.received) {
    bodies.set(one.deliveryId, (bodies.get(one.deliveryId) ?? new Set()).add(one.body))
  }
  assert.strictEqual(bodies.size, events, "none under another id")
  assert.strictEqual(new Set(receiver.received.map((it) => it.body)).size, events)
  for (const distinct of bodies.values()) assert.strictEqual(distinct.size, 1, "the same bytes")
  const again = receiver.received.length - events
  assert.isAtLeast(again, 1, "it was paused with running attempts")
  assert.isAtMost(again, 16, "no more than were running")

  // Both continue together, up to the limit
  await queue(databaseUrl, id, 800)
  await until(() => receiver.received.length >= 600, {
    what: "the whole limit",
    millis: 60_000
  })
  // Longer than the interval of the delivery schedulers
  await pause(6000)
  const times = receiver.received.map((it) => it.atMillis)
  assert.isAtMost(mostWithin(times, 60_000), 600)
}
