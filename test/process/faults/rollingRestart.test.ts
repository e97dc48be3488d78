import { Effect, Exit, Scope } from "effect"
import { rmSync } from "node:fs"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { startBalancer } from "../../support/balancers.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { startSlowVendor } from "../../support/slowVendor.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

/** By the simulator, and by a vendor whose submit blocks for 2 seconds. */
const simulated = "/vendors/alibaba/v1/text-to-image-max/generation"
const blocking = "/vendors/google/v1/image-edit-pro/edit"
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const scope = Scope.makeUnsafe()
let databaseUrl: string
let database: Client
const artifacts = temporaryFolder("rolling-restart")
let vendor: Awaited<ReturnType<typeof startSlowVendor>>

beforeAll(async () => {
  databaseUrl = (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
  database = new Client({ connectionString: databaseUrl })
  await database.connect()
  vendor = await startSlowVendor()
}, 120_000)

afterAll(async () => {
  await database.end()
  await vendor[Symbol.asyncDispose]()
  rmSync(artifacts, { recursive: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

/** Clients behind a balancer: creates, waiting GETs, streams and small calls, one after the other. */
const startLoad = (url: string, key: string) => {
  const load = { isOn: true, created: [] as Array<string>, faults: [] as Array<string>, ended: 0 }
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const send = async (what: string, path: string, init: RequestInit, expected: number) => {
    try {
      const response = await fetch(url + path, init)
      const text = await response.text()
      load.ended += 1
      if (response.status === expected) return text
      load.faults.push(`${what}: ${response.status} ${text.slice(0, 200)}`)
    } catch (cause) {
      load.faults.push(`${what}: ${String(cause)} ${String((cause as Error).cause)}`)
    }
    return ""
  }
  const post = (what: string, path: string, body: unknown, expected: number) =>
    send(what, path, { method: "POST", headers, body: JSON.stringify(body) }, expected)
  const create = async (path: string, body: object) => {
    const text = await post("create", path, body, 202)
    if (text === "") return
    const { id } = JSON.parse(text).task_info
    load.created.push(id)
    await send("wait", `${path}/${id}`, { headers: { ...headers, prefer: "wait=2" } }, 200)
  }
  const chat = async (stream: boolean) => {
    const messages = [{ role: "user", content: stream ? "slow=3000" : "slow=20" }]
    const body = { model: "gpt-4o", max_tokens: 50, stream, messages }
    const text = await post(stream ? "stream" : "call", "/v1/chat/completions", body, 200)
    if (stream && text !== "" && !text.includes("[DONE]")) load.faults.push("a stream was cut")
  }
  const repeat = async (work: () => Promise<unknown>, restMillis: number) => {
    while (load.isOn) {
      await work()
      await pause(restMillis)
    }
  }
  const clients = [
    repeat(() => create(simulated, { prompt: "x" }), 300),
    repeat(() => create(blocking, { prompt: "slow=2000", images: [picture] }), 300),
    ...Array.from({ length: 3 }, () => repeat(() => chat(true), 50)),
    ...Array.from({ length: 3 }, () => repeat(() => chat(false), 150))
  ]
  const stop = async () => {
    load.isOn = false
    await Promise.all(clients)
  }
  return { load, stop }
}

const countOf = async (sql: string): Promise<number> => {
  const { rows } = await database.query<{ count: string }>(sql)
  return Number(rows[0]?.count)
}

/** Tasks created through this balancer run in all processes. */
const assertSpread = async (url: string, key: string) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  // In hand, so they have an owner while their submits block
  const body = JSON.stringify({ prompt: "slow=60000", images: [picture] })
  const ids = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const response = await fetch(url + blocking, { method: "POST", headers, body })
      return JSON.parse(await response.text()).task_info.id
    })
  )
  const owners = async () => {
    const { rows } = await database.query<{ count: string }>(
      "SELECT count(*) FROM runs WHERE task_id = ANY ($1) AND owner IS NOT NULL GROUP BY owner",
      [ids]
    )
    return rows.map(({ count }) => Number(count))
  }
  await until(async () => (await owners()).reduce((a, b) => a + b, 0) === 30)
  const counts = await owners()
  assert.strictEqual(counts.length, 3, String(counts))
  assert.isAtLeast(Math.min(...counts), 7, String(counts))
  for (const id of ids) {
    await fetch(`${url + blocking}/${id}`, { method: "DELETE", headers })
  }
}

/** docs/reference/requirements.md#r-service-13 */
describe("a rolling restart of three processes under load", () => {
  it("fails no request, cuts no stream, and duplicates no task or event", async () => {
    await using receiver = await startReceiver()
    const env = {
      ...vendor.gemini,
      ...vendor.openAi,
      ...receiver.env,
      ARTIFACT_STORE: artifacts,
      SHUTDOWN_DELAY: "2 seconds",
      SIMULATOR_DELAY: "1 second to 3 seconds"
    }
    const start = () => GatewayProcess.start({ databaseUrl, env })
    const processes: Array<GatewayProcess> = []
    try {
      for (let n = 0; n < 3; n += 1) processes.push(await start())
      const [first] = processes
      const key = (await first!.makeUser("100000.00")).key
      for (const process of processes) process.useKey(key)
      const events = ["task.created", "task.succeeded", "task.failed"]
      await first!.call("POST", "/manage/v1/webhook-endpoints", { url: receiver.url, events })
      const urls = processes.map(({ url }) => new URL(url))
      await using plain = await startBalancer("plain", urls)
      await using naive = await startBalancer("naive", urls)
      const loads = [startLoad(plain.url, key), startLoad(naive.url, key)]
      await pause(3000)
      for (const process of processes) {
        await process.kill("SIGTERM")
        assert.strictEqual(await process.ended, 0, process.output)
        await process.start()
        await pause(1000)
      }
      await Promise.all(loads.map(({ stop }) => stop()))
      const created = loads.flatMap(({ load }) => load.created)
      assert.deepStrictEqual(
        loads.flatMap(({ load }) => load.faults),
        []
      )
      assert.isAbove(naive.retries.connect, 0)
      for (const { output } of processes) assert.notInclude(output, "interrupts work")
      await until(async () => (await countOf("SELECT count(*) FROM runs")) === 0, {
        millis: 60_000,
        what: "the end of all tasks"
      })
      const { rows: failed } = await database.query(
        "SELECT model, error FROM tasks WHERE status <> 'completed'"
      )
      assert.deepStrictEqual(failed, [])
      assert.strictEqual(await countOf("SELECT count(*) FROM tasks"), created.length)
      const twice = "SELECT count(*) FROM (SELECT 1 FROM vendor_attempts GROUP BY task_id"
      assert.strictEqual(await countOf(`${twice} HAVING count(*) > 1) a`), 0)
      const outcomes = () => receiver.received.filter(({ event }) => event.type !== "task.created")
      await until(() => outcomes().length >= created.length, {
        millis: 60_000,
        what: "every webhook"
      })
      await pause(2000)
      assert.strictEqual(outcomes().length, created.length)
      assert.strictEqual(receiver.received.length, 2 * created.length)
      assert.strictEqual(
        new Set(receiver.received.map(({ deliveryId }) => deliveryId)).size,
        receiver.received.length
      )
      await assertSpread(naive.url, key)
    } finally {
      await Promise.all(processes.map((process) => process.close()))
    }
  }, 400_000)
})
