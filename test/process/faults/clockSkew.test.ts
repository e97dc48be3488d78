import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { layerPostgres } from "../../../src/db/Database.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { chatCompletion, chatEvents, openAiUsage } from "../../support/mockOpenAi.ts"
import { events, json, mockVendor } from "../../support/mockVendors.ts"
import type { Script } from "../../support/mockVendors.ts"
import { startSlowVendor } from "../../support/slowVendor.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"
import type { Received } from "../../support/webhookReceiver.ts"

/** Longer than a process without a heartbeat counts as alive. */
const longMillis = 14_000
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
const path = "/vendors/openai/v1/slow-picture/generation"
const catalog = {
  add: [
    {
      label: "text-to-image-preview",
      vendor: "openai",
      model: "slow-picture",
      adapter: "openai-image",
      upstreamModel: "gpt-image-2"
    }
  ]
}

/** A slow vendor: pictures, calls and streams take 14 seconds. */
const slow: Script = async (request, response) => {
  const body = request.body === "" ? {} : JSON.parse(request.body)
  if (body.stream === true) {
    const all = chatEvents(["one ", "two ", "three"], true)
    return events(response, all, () => pause(longMillis / all.length))
  }
  await pause(longMillis)
  return request.url.includes("/images/")
    ? json(response, 200, { created: 1, data: [{ b64_json: pixel }], usage: openAiUsage })
    : json(response, 200, chatCompletion(body.model))
}

const tasksEach = 4
const callsEach = 4

/** Tasks with a blocking submit, calls and streams in all processes, for longer than a heartbeat counts. */
const work = async (processes: ReadonlyArray<GatewayProcess>) => {
  const create = async (gateway: GatewayProcess, n: number) => {
    const made = await gateway.call("POST", path, { prompt: `${n}`, n: 1 })
    assert.strictEqual(made.status, 202, made.text)
    return String(made.json.task_info.id)
  }
  const chat = (gateway: GatewayProcess, stream: boolean) =>
    gateway.call("POST", "/v1/chat/completions", {
      model: "gpt-4o",
      max_tokens: 1000,
      messages: [],
      ...(stream ? { stream, stream_options: { include_usage: true } } : {})
    })
  const each = <A>(count: number, run: (gateway: GatewayProcess, n: number) => Promise<A>) =>
    processes.flatMap((gateway) => Array.from({ length: count }, (_, n) => run(gateway, n)))
  const calls = each(callsEach, (gateway, n) => chat(gateway, n % 2 === 0))
  const ids = await Promise.all(each(tasksEach, create))
  for (const call of await Promise.all(calls)) assert.strictEqual(call.status, 200, call.text)
  return ids
}

const ended = async (gateway: GatewayProcess, ids: ReadonlyArray<string>) => {
  const infos = []
  for (const id of ids) {
    const info = await until(
      async () => {
        const { task_info } = (await gateway.call("GET", `${path}/${id}`)).json
        return /completed|failed/u.test(task_info.status) ? task_info : undefined
      },
      { what: "the end of all tasks" }
    )
    infos.push(info)
  }
  return infos
}

/** Longer than the other processes take to search for lost attempts. */
const answerMillis = 4000

/** All deliveries with their attempts, once all have succeeded. */
const deliveries = async (gateway: GatewayProcess, count: number) => {
  const path = "/manage/v1/webhook-deliveries"
  const ended = await until(
    async () => {
      const { data } = (await gateway.call("GET", `${path}?status=succeeded&limit=100`)).json
      return data.length === count ? data : undefined
    },
    { what: "the record of every attempt" }
  )
  return Promise.all(
    ended.map(async ({ id }: { id: string }) => (await gateway.call("GET", `${path}/${id}`)).json)
  )
}

/** Beside a process with a correct clock. */
const offsets = [11_000, -11_000, -300_000]

const skewed = async (databaseUrl: string) => {
  const upstream = await mockVendor(slow)
  const folder = temporaryFolder("clock-skew")
  await writeFile(join(folder, "catalog.json"), JSON.stringify(catalog))
  await using receiver = await startReceiver(() => pause(answerMillis).then(() => 200))
  const env = {
    ...receiver.env,
    OPENAI_API_KEY: "sk-vendor",
    OPENAI_BASE_URL: `${upstream.origin}/v1`,
    CATALOG_FILE: join(folder, "catalog.json")
  }
  await using first = await GatewayProcess.start({ databaseUrl, env })
  const key = await first.key()
  await using stack = new AsyncDisposableStack()
  const others: Array<GatewayProcess> = []
  for (const offset of offsets) {
    const loaded = { NODE_OPTIONS: "--import=./test/support/clockJump.ts" }
    const other = await GatewayProcess.start({
      databaseUrl,
      env: { ...env, ...loaded, CLOCK_OFFSET: String(offset) }
    })
    others.push(stack.use(other.useKey(key)))
  }
  const all = [first, ...others]
  const hook = { url: receiver.url, events: ["task.created", "task.succeeded", "task.failed"] }
  const endpoint = await first.call("POST", "/manage/v1/webhook-endpoints", hook)

  const ids = await work(all)
  const infos = await ended(first, ids)
  assert.deepStrictEqual(
    infos.map(({ error, status }) => [status, error?.code]),
    ids.map(() => ["completed", undefined])
  )
  assert.strictEqual(upstream.seen.filter(({ url }) => url.includes("/images/")).length, ids.length)

  const receipts = (await first.call("GET", "/manage/v1/calls?limit=100")).json.data
  assert.strictEqual(receipts.length, callsEach * all.length)
  for (const { cost, outcome } of receipts) {
    assert.strictEqual(outcome, "settled")
    assert.isAbove(Number(cost), 0)
  }
  await until(() => receiver.received.length >= ids.length * 2, {
    what: "every webhook"
  })
  // Longer than the rescue of attempts would need to send them again
  await pause(3000)
  assert.strictEqual(receiver.received.length, ids.length * 2, "no webhook comes twice")
  for (const { atMillis, headers } of receiver.received) {
    const signedAt = Number(headers["x-service-webhook-timestamp"]) * 1000
    assert.isBelow(Math.abs(atMillis - signedAt), 8000, "a receiver accepts the signature")
  }
  const [{ body, headers }] = receiver.received.slice(-1) as [Received]
  const debug = `/manage/v1/webhook-endpoints/${endpoint.json.id}/debug-signature`
  for (const gateway of all) {
    const { json } = await gateway.call("POST", debug, { headers, body })
    assert.deepStrictEqual(json, { valid: true, findings: [] })
  }
  for (const { attempts } of await deliveries(first, ids.length * 2)) {
    assert.lengthOf(attempts, 1)
    const [{ ended_at, failure, started_at }] = attempts
    assert.isNull(failure)
    assert.closeTo(Date.parse(ended_at) - Date.parse(started_at), answerMillis, 1500)
  }
  for (const gateway of all) {
    const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
    assert.strictEqual(wallet.held_balance, "0.00")
    assert.match((await gateway.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
  }

  const skew = async (gateway: GatewayProcess) =>
    Number(
      /^gateway_clock_skew_seconds (\S+)$/mu.exec((await gateway.call("GET", "/metrics")).text)?.[1]
    )
  // A heartbeat that is slow on a busy machine measures the clock less exactly
  const isNear = (gateway: GatewayProcess, seconds: number) =>
    until(async () => Math.abs((await skew(gateway)) - seconds) <= 0.5, {
      what: `a skew of ${seconds} s`
    })
  await isNear(first, 0)
  assert.notMatch(first.output, /clock of this process/u)
  for (const [n, other] of others.entries()) {
    const seconds = offsets[n]! / 1000
    await isNear(other, seconds)
    const shown = /clock of this process differs from the database's by ([\d.]+) s/u.exec(
      other.output
    )
    assert.closeTo(Number(shown?.[1]), Math.abs(seconds), 1)
  }
  await upstream.close()
}

/** Blocks every connection of the process's pool with a statement that waits for a lock. */
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const starved = async (databaseUrl: string) => {
  await using vendor = await startSlowVendor()
  const env = vendor.gemini
  await using first = await GatewayProcess.start({ databaseUrl, env })
  await using second = await GatewayProcess.start({ databaseUrl, env })
  second.useKey(await first.key())
  // In hand while their submits block
  const model = "/vendors/google/v1/image-edit-pro/edit"
  const body = { prompt: "slow=60000", images: [picture] }
  const create = () => first.call("POST", model, body)
  const running = await Promise.all([1, 2, 3].map(create))
  for (const { status, text } of running) assert.strictEqual(status, 202, text)
  const reads: Array<Promise<unknown>> = []
  const owners = Effect.gen(function* () {
    const sql = yield* SqlClient
    const before = yield* sql`SELECT task_id, owner, epoch FROM runs ORDER BY task_id`.pipe(
      Effect.repeat({
        until: (rows) => rows.every(({ owner }) => owner !== null),
        schedule: Schedule.spaced("50 millis")
      })
    )
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`LOCK TABLE wallets IN ACCESS EXCLUSIVE MODE`
        for (let n = 0; n < 40; n += 1) reads.push(first.call("GET", "/manage/v1/wallet"))
        yield* Effect.sleep("14 seconds")
      })
    )
    yield* Effect.promise(() => Promise.all(reads))
    yield* Effect.sleep("3 seconds")
    const ids = before.map(({ taskId }) => taskId as string)
    const after =
      yield* sql`SELECT task_id, owner, epoch FROM runs WHERE task_id = ANY(${ids}::uuid[]) ORDER BY task_id`
    return { before, after }
  }).pipe(
    Effect.provide(
      layerPostgres({ url: Redacted.make(databaseUrl), idleTransactionMillis: 60_000 })
    )
  )
  const { after, before } = await Effect.runPromise(owners)
  assert.strictEqual(before.length, 3)
  assert.deepStrictEqual(after, before, "no other process has taken a task")
}

describe.concurrent("processes over one Postgres", () => {
  it.live(
    "with clocks 11 s ahead, 11 s behind and 300 s behind fail no task, give no call for free, send no webhook twice or with an old signature, and report the skew",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        yield* Effect.promise(() => skewed(href))
      }),
    180_000
  )

  it.live(
    "keep their tasks if a pool is busy for longer than a heartbeat counts",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        yield* Effect.promise(() => starved(href))
      }),
    180_000
  )
})
