import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Progress } from "../../../src/vendors/VendorClient.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { stores } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Every table that a move writes to, and the operation. */
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

/** No task ends while the rows are counted. */
const hanging = { prompt: "[[sim:hang]]" }

describe("the move's transaction", () => {
  it.live(
    "a connection killed before or after any of its writes leaves all or nothing",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const hook = { url: "https://127.0.0.1/hook", events: ["task.created"] }
        yield* user.call("POST", endpoints, hook)
        yield* sql`CREATE SEQUENCE kills`
        // A sequence is not rolled back, so that the kill happens once
        yield* sql`
          CREATE FUNCTION kill_once() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            IF nextval('kills') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN NULL;
          END $$`
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
              // The service retries: then everything exists, once
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

/** Every table that the end of a task writes to, and the operation. */
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
/** Its jobs run until the test has installed its trigger. */
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
    "a connection killed before or after any of its writes: the task ends once, with one settlement and one event",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const hook = { url: "https://127.0.0.1/hook", events: ["task.succeeded"] }
        yield* user.call("POST", endpoints, hook)
        yield* sql`CREATE SEQUENCE kills`
        yield* sql`
          CREATE FUNCTION kill_once() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            IF nextval('kills') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN NULL;
          END $$`
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

/** A gateway process, an endpoint for the receiver, and its log. */
const begin = async (url: string, env: Readonly<Record<string, string>>) => {
  const gateway = await GatewayProcess.start({ env })
  const endpoint = await gateway.call("POST", endpoints, { url, events: ["task.succeeded"] })
  assert.strictEqual(endpoint.status, 201, endpoint.text)
  const test = await gateway.call("POST", `${endpoints}/${endpoint.json.id}/test`)
  const id: string = test.json.delivery_id
  const log = async () => (await gateway.call("GET", `/manage/v1/webhook-deliveries/${id}`)).json
  return { gateway, id, log }
}

describe("a real process with the real clock", () => {
  it("the first retry comes 15 s after the end of the failed attempt, never early, although the process is paused meanwhile; a pause beyond the due time delays it only until the process continues", async () => {
    await using receiver = await startReceiver((_one, before) => (before.length === 0 ? 503 : 200))
    const { gateway, id, log } = await begin(receiver.url, receiver.env)
    await using _gateway = gateway
    await until(() => receiver.received.length === 1)
    await until(async () => (await log()).status === "pending")
    process.kill(gateway.pid ?? 0, "SIGSTOP")
    await pause(16_000)
    const now = ownClock(gateway.pid)
    const resumed = now()
    process.kill(gateway.pid ?? 0, "SIGCONT")
    await until(() => receiver.received.length === 2)
    assert.isBelow(now() - resumed, 5000)
    const shown = await until(async () => {
      const now = await log()
      return now.status === "succeeded" ? now : undefined
    })
    const [first, second] = shown.attempts
    assert.strictEqual(Date.parse(second.due_at) - Date.parse(first.ended_at), 15_000)
    assert.isAtLeast(second.lateness_ms, 0)
    assert.deepStrictEqual(
      receiver.received.map((one) => one.deliveryId),
      [id, id]
    )
    assert.strictEqual(receiver.received[0]?.body, receiver.received[1]?.body)
  }, 180_000)

  it("the first two retries, after 15 s and 60 s, are exact", async () => {
    await using receiver = await startReceiver((_one, before) => (before.length < 2 ? 500 : 200))
    const { gateway, log } = await begin(receiver.url, receiver.env)
    await using _gateway = gateway
    const now = ownClock(gateway.pid)
    const waited = () => performance.now() - now()
    const waitedBefore = waited()
    const shown = await until(
      async () => {
        const now = await log()
        return now.status === "succeeded" ? now : undefined
      },
      { millis: 100_000 }
    )
    const [first, second, third] = shown.attempts
    assert.strictEqual(Date.parse(second.due_at) - Date.parse(first.ended_at), 15_000)
    assert.strictEqual(Date.parse(third.due_at) - Date.parse(second.ended_at), 60_000)
    for (const { lateness_ms } of [second, third]) {
      assert.isAtLeast(lateness_ms, 0)
      assert.isBelow(lateness_ms - (waited() - waitedBefore), 2000)
    }
  }, 130_000)

  it("killed with -9 after the receiver responded and before the record: sent again under the same id", async () => {
    const holder: { gateway?: GatewayProcess } = {}
    await using receiver = await startReceiver((_one, before) => {
      if (before.length === 0) process.kill(holder.gateway?.pid ?? 0, "SIGKILL")
      return 200
    })
    const gateway = await GatewayProcess.start({ env: receiver.env })
    await using _gateway = gateway
    holder.gateway = gateway
    const endpoint = await gateway.call("POST", endpoints, {
      url: receiver.url,
      events: ["task.succeeded"]
    })
    await gateway.call("POST", `${endpoints}/${endpoint.json.id}/test`).catch(() => undefined)
    await gateway.ended
    await gateway.start()
    await until(() => receiver.received.length >= 2)
    const [first, second] = receiver.received
    assert.strictEqual(second?.deliveryId, first?.deliveryId)
    const shown = await until(async () => {
      const answer = await gateway.call("GET", `/manage/v1/webhook-deliveries/${first?.deliveryId}`)
      return answer.json.status === "succeeded" ? answer.json : undefined
    })
    assert.deepStrictEqual(
      shown.attempts.map((it: { readonly failure: string | null }) => it.failure),
      ["lost", null]
    )
  }, 180_000)
})
