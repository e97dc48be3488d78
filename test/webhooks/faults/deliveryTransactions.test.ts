import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll } from "vitest"
import type { Progress } from "../../../src/vendors/VendorClient.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { stores } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Every table that the state change writes to, with the operation. */
const writes = [
  ["tasks", "insert"],
  ["runs", "insert"],
  ["events", "insert"],
  ["deliveries", "insert"],
  ["delivery_queue", "insert"],
  ["wallets", "update"],
  ["holds", "insert"],
  ["wallet_entries", "insert"]
] as const

const counts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`
    SELECT (SELECT count(*) FROM tasks)::int AS tasks, (SELECT count(*) FROM runs)::int AS runs,
      (SELECT count(*) FROM events)::int AS events, (SELECT count(*) FROM deliveries)::int AS deliveries,
      (SELECT count(*) FROM delivery_queue)::int AS queue, (SELECT count(*) FROM holds)::int AS holds,
      (SELECT count(*) FROM wallet_entries)::int AS entries, (SELECT sum(held)::text FROM wallets) AS held`
  return { ...row }
})

/** The counts after all deliveries are sent. */
const settledCounts = Effect.suspend(() => eventually(counts, (now) => now["queue"] === 0))

/** `kill_once` kills its own connection. A sequence is not rolled back, so this happens only once. */
const createKill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE SEQUENCE kills`
  yield* sql`
    CREATE FUNCTION kill_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('kills') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
      RETURN NULL;
    END $$`
})

/** No task ends while the rows are counted. */
const hanging = { prompt: "[[sim:hang]]" }

describe("the transaction of a move", () => {
  it.live(
    "writes all or nothing if its connection is killed before or after any of its writes",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const hook = { url: "https://127.0.0.1/hook", events: ["task.created"] }
        yield* user.call("POST", endpoints, hook)
        yield* createKill
        for (const [table, write] of writes) {
          for (const when of ["before", "after"]) {
            const what = `${when} ${write} of ${table}`
            const before = yield* settledCounts
            yield* sql`ALTER SEQUENCE kills RESTART`
            yield* sql.unsafe(
              `CREATE TRIGGER kill ${when} ${write} ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION kill_once()`
            )
            const created = yield* user.call("POST", path, hanging)
            const [kills] = yield* sql`SELECT is_called FROM kills`
            assert.isTrue(kills?.["isCalled"], what)
            yield* sql.unsafe(`DROP TRIGGER kill ON ${table}`)
            const after = yield* counts
            if (created.status === 202) {
              // The service retries, and then everything exists exactly once
              assert.strictEqual(Number(after["tasks"]), Number(before["tasks"]) + 1, what)
              continue
            }
            assert.isAtLeast(created.status, 500, what)
            assert.deepStrictEqual(after, before, what)
          }
        }
        const before = yield* settledCounts
        const whole = yield* user.call("POST", path, hanging)
        assert.strictEqual(whole.status, 202, whole.text)
        const after = yield* counts
        for (const name of ["tasks", "runs", "events", "deliveries", "holds"] as const) {
          assert.strictEqual(Number(after[name]), Number(before[name]) + 1, name)
        }
        yield* settledCounts
      }).pipe(Effect.provide(layerGateway({ database: stores.postgres }))),
    180_000
  )
})

/** Every table that the end of a task writes to, with the operation. */
const endWrites = [
  ["runs", "delete"],
  ["tasks", "update"],
  ["holds", "delete"],
  ["wallet_entries", "insert"],
  ["wallets", "update"],
  ["events", "insert"],
  ["deliveries", "insert"],
  ["delivery_queue", "insert"]
] as const

const pollAfter = Duration.millis(20)
/** Its jobs run until the test has installed the trigger. */
const trap = { isPlaced: false }
const trapped = {
  submit: () => Effect.succeed({ _tag: "Accepted" as const, handle: { job: "j" }, pollAfter }),
  poll: () =>
    Effect.sync((): Progress =>
      trap.isPlaced
        ? {
            _tag: "Done",
            result: { items: [{ _tag: "Bytes", bytes: new Uint8Array([1]), mime: "image/png" }] }
          }
        : { _tag: "Running", pollAfter }
    )
}

describe("the transaction that ends a task", () => {
  it.live(
    "ends the task once, with one settlement and one event, if its connection is killed before or after any of its writes",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const hook = { url: "https://127.0.0.1/hook", events: ["task.succeeded"] }
        yield* user.call("POST", endpoints, hook)
        yield* createKill
        let ended = 0
        for (const [table, write] of endWrites) {
          for (const when of ["before", "after"]) {
            const what = `${when} ${write} of ${table}`
            trap.isPlaced = false
            const created = yield* user.call("POST", path, { prompt: "x" })
            assert.strictEqual(created.status, 202, created.text)
            const id = String(created.json.task_info.id)
            const task = Effect.map(
              user.call("GET", `${path}/${id}`),
              (it) => it.json?.task_info?.status
            )
            yield* eventually(task, (status) => status === "processing")
            yield* sql`ALTER SEQUENCE kills RESTART`
            yield* sql.unsafe(
              `CREATE TRIGGER kill ${when} ${write} ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION kill_once()`
            )
            trap.isPlaced = true
            yield* eventually(task, (status) => status === "completed")
            const [kills] = yield* sql`SELECT is_called FROM kills`
            assert.isTrue(kills?.["isCalled"], what)
            yield* sql.unsafe(`DROP TRIGGER kill ON ${table}`)
            ended += 1
            const wallet = (yield* user.call("GET", "/manage/v1/wallet")).json
            assert.strictEqual(wallet.settled_balance, (1000 - 7.5 * ended).toFixed(2), what)
            assert.strictEqual(wallet.held_balance, "0.00", what)
            const [sent] = yield* sql`
              SELECT count(*)::int AS n FROM deliveries d JOIN events e ON e.id = d.event_id
              WHERE e.task_id = ${id} AND e.type = 'task.succeeded'`
            assert.strictEqual(sent?.["n"], 1, what)
          }
        }
      }).pipe(Effect.provide(layerGateway({ database: stores.postgres, vendor: trapped }))),
    120_000
  )
})

/** Sends a test event to a new endpoint. */
const sendTest = async (gateway: GatewayProcess, url: string) => {
  const endpoint = await gateway.call("POST", endpoints, { url, events: ["task.succeeded"] })
  assert.strictEqual(endpoint.status, 201, endpoint.text)
  const test = await gateway.call("POST", `${endpoints}/${endpoint.json.id}/test`)
  const id: string = test.json.delivery_id
  const log = async () => (await gateway.call("GET", `/manage/v1/webhook-deliveries/${id}`)).json
  const succeeded = async () => {
    const now = await log()
    return now.status === "succeeded" ? now : undefined
  }
  return { id, log, succeeded }
}

/** Kills after the response and before the record: killedDeliveries.test.ts */
describe("a real process with the real clock", () => {
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  let gateway: GatewayProcess
  /** The delivery that is refused twice, running in the background of the others, and its allowed delay. */
  let exact: Awaited<ReturnType<typeof sendTest>>
  let waited: () => number

  beforeAll(async () => {
    receiver = await startReceiver((one, before) => {
      const isFirst = (before[0] ?? one).deliveryId === one.deliveryId
      const times = before.filter((it) => it.deliveryId === one.deliveryId).length
      return times < (isFirst ? 2 : 1) ? 503 : 200
    })
    gateway = await GatewayProcess.start({ env: receiver.env })
    const now = ownClock(gateway.pid)
    const waitedBefore = performance.now() - now()
    waited = () => performance.now() - now() - waitedBefore
    exact = await sendTest(gateway, receiver.url)
  }, 120_000)

  afterAll(async () => {
    await gateway?.close()
    await receiver?.[Symbol.asyncDispose]()
  })

  it("sends the first retry 15 s after the end of the failed attempt and never early; a pause of the process beyond the due time delays it only until the process continues", async () => {
    // The exact delivery now waits for a minute
    await until(() => receiver.received.length === 2)
    const { id, log, succeeded } = await sendTest(gateway, receiver.url)
    const received = () => receiver.received.filter((it) => it.deliveryId === id)
    await until(() => received().length === 1)
    await until(async () => (await log()).status === "pending")
    process.kill(gateway.pid ?? 0, "SIGSTOP")
    await pause(16_000)
    const now = ownClock(gateway.pid)
    const resumed = now()
    process.kill(gateway.pid ?? 0, "SIGCONT")
    await until(() => received().length === 2)
    assert.isBelow(now() - resumed, 5000)
    const [first, second] = (await until(succeeded)).attempts
    assert.strictEqual(Date.parse(second.due_at) - Date.parse(first.ended_at), 15_000)
    assert.isAtLeast(second.lateness_ms, 0)
    assert.strictEqual(received()[0]?.body, received()[1]?.body)
  }, 180_000)

  it("sends the first two retries after exactly 15 s and 60 s", async () => {
    const [first, second, third] = (await until(exact.succeeded, { millis: 100_000 })).attempts
    assert.strictEqual(Date.parse(second.due_at) - Date.parse(first.ended_at), 15_000)
    assert.strictEqual(Date.parse(third.due_at) - Date.parse(second.ended_at), 60_000)
    for (const { lateness_ms } of [second, third]) {
      assert.isAtLeast(lateness_ms, 0)
      assert.isBelow(lateness_ms - waited(), 2000)
    }
  }, 130_000)
})
