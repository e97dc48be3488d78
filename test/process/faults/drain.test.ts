import { Effect, Exit, Scope } from "effect"
import { rmSync } from "node:fs"
import { Agent, request as httpRequest } from "node:http"
import type { IncomingHttpHeaders } from "node:http"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { startSlowVendor } from "../../support/slowVendor.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"

const blocking = "/vendors/google/v1/image-edit-pro/edit"
const polled = "/vendors/alibaba/v1/text-to-image-preview/generation"

interface Response {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Uses Node's own client, which shows `Connection` and keeps its agent's connection. */
const call = (
  url: string,
  options: { readonly key: string; readonly body?: unknown; readonly agent?: Agent }
): Promise<Response> =>
  new Promise((resolve, reject) => {
    const { agent, body, key } = options
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const method = body === undefined ? "GET" : "POST"
    const request = httpRequest(url, { method, headers, ...(agent && { agent }) }, (response) => {
      let text = ""
      response.on("data", (chunk: Buffer) => (text += chunk.toString()))
      response.on("error", reject)
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      )
    })
    request.on("error", reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })

const chat = (content: string, stream: boolean) => ({
  model: "gpt-4o",
  max_tokens: 100,
  stream,
  messages: [{ role: "user", content }]
})

const idOf = ({ status, text }: Response): string => {
  assert.strictEqual(status, 202, text)
  return JSON.parse(text).task_info.id
}

const artifacts = temporaryFolder("drain")
let vendor: Awaited<ReturnType<typeof startSlowVendor>>
let database: Client
let databaseUrl: string
const scope = Scope.makeUnsafe()

beforeAll(async () => {
  vendor = await startSlowVendor()
  databaseUrl = (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
  database = new Client({ connectionString: databaseUrl })
  await database.connect()
}, 120_000)

afterAll(async () => {
  await database.end()
  await vendor[Symbol.asyncDispose]()
  rmSync(artifacts, { recursive: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const start = (env: Readonly<Record<string, string>>) =>
  GatewayProcess.start({
    databaseUrl,
    env: {
      ARTIFACT_STORE: artifacts,
      ...vendor.dashScope,
      ...vendor.gemini,
      ...vendor.openAi,
      ...env
    }
  })

const ownersOf = async (id: string) => {
  const { rows } = await database.query<{ owner: string | null }>(
    "SELECT owner FROM runs WHERE task_id = $1",
    [id]
  )
  return rows.map(({ owner }) => owner)
}

const attemptsOf = async (id: string) => {
  const { rows } = await database.query<{ state: string }>(
    "SELECT state FROM vendor_attempts WHERE task_id = $1",
    [id]
  )
  return rows.map(({ state }) => state)
}

/** A blocking task, a polled task and a stream, each of which has reached the vendor. */
const beginWork = async (gateway: GatewayProcess, millis: number) => {
  const key = await gateway.key()
  const { calls, jobs, submits } = vendor.seen
  const body = { prompt: `slow=${millis}` }
  const images = [`data:image/png;base64,${pixel.toString("base64")}`]
  const submit = idOf(await call(gateway.url + blocking, { key, body: { ...body, images } }))
  const waiting = idOf(await call(gateway.url + polled, { key, body }))
  const stream = call(`${gateway.url}/v1/chat/completions`, {
    key,
    body: chat(`slow=${millis}`, true)
  })
  const isThere = () =>
    vendor.seen.submits > submits && vendor.seen.jobs > jobs && vendor.seen.calls > calls
  await until(isThere, {
    what: "the vendor's work",
    // The vendor accepts two blocking submits per minute
    millis: 60_000
  })
  await until(async () => (await attemptsOf(waiting))[0] === "submitted")
  return { key, submit, waiting, stream }
}

/** docs/reference/requirements.md#r-service-13 */
describe("a process that drains", () => {
  it("serves until load balancers have noticed, hands its tasks over, and lets a stream and a submit end", async () => {
    await using gateway = await start({ SHUTDOWN_DELAY: "3 seconds" })
    const { key, stream, submit, waiting } = await beginWork(gateway, 7000)
    const agent = new Agent({ keepAlive: true })
    const ready = () => call(`${gateway.url}/readyz`, { key, agent })
    assert.strictEqual((await ready()).headers.connection, "keep-alive")
    const now = ownClock(gateway.pid)
    const beganOwn = now()
    const began = performance.now()
    const ended = gateway.kill("SIGTERM")
    const refused = await until(async () => {
      const answer = await ready()
      return answer.status === 200 ? undefined : answer
    })
    assert.isBelow(now() - beganOwn, 1500)
    assert.strictEqual(refused.status, 503)
    assert.strictEqual(JSON.parse(refused.text).code, 5003)
    assert.strictEqual(refused.headers.connection, "close")
    const late = await call(gateway.url + polled, { key, agent, body: { prompt: "late" } })
    assert.strictEqual(late.headers.connection, "close")
    await until(async () => (await ownersOf(waiting))[0] === null)
    assert.deepStrictEqual(await ownersOf(idOf(late)), [null])
    assert.isBelow(now() - beganOwn, 2900)
    assert.strictEqual((await call(`${gateway.url}/healthz`, { key })).status, 200)
    const isRefused = () =>
      ready().then(
        () => undefined,
        (error: NodeJS.ErrnoException) => (error.code === "ECONNREFUSED" ? true : undefined)
      )
    await until(isRefused)
    assert.isAbove(performance.now() - began, 2900)
    assert.match((await stream).text, /\[DONE\]/u)
    await ended
    assert.strictEqual(await gateway.ended, 0, gateway.output)
    assert.notInclude(gateway.output, "interrupts work")
    assert.deepStrictEqual(await attemptsOf(submit), ["submitted"])
    assert.match(
      String((await ownersOf(submit))[0]),
      /^(?:null|(?:left|late) proc_.*)$/u,
      "it is nobody's"
    )
    agent.destroy()

    await using next = await start({})
    const path = `${next.url + blocking}/${submit}`
    await until(async () => {
      const { task_info } = JSON.parse((await call(path, { key })).text)
      return task_info.status === "completed"
    })
    assert.deepStrictEqual(await attemptsOf(submit), ["submitted"])
  }, 120_000)

  it("cuts requests off after a second signal, counts them, and sends each a body", async () => {
    await using gateway = await start({ SHUTDOWN_DELAY: "1 minute" })
    const { key, stream, submit } = await beginWork(gateway, 60_000)
    const cut = stream.then(
      () => "complete",
      () => "cut"
    )
    const { calls } = vendor.seen
    const hanging = call(`${gateway.url}/v1/chat/completions`, { key, body: chat("hang", false) })
    await until(() => vendor.seen.calls > calls)
    const ended = gateway.kill("SIGTERM")
    await until(() => gateway.output.includes("Draining the process"))
    assert.isTrue(gateway.isRunning)
    await gateway.kill("SIGTERM")
    assert.isBelow(await ended, 10_000)
    assert.strictEqual(await gateway.ended, 0, gateway.output)
    assert.strictEqual(await cut, "cut")
    const { headers, status, text } = await hanging
    assert.strictEqual(status, 503)
    assert.strictEqual(headers["content-type"], "application/problem+json")
    assert.strictEqual(JSON.parse(text).code, 5003)
    const line = gateway.output.split("\n").find((it) => it.includes("interrupts work")) ?? ""
    assert.include(JSON.stringify(JSON.parse(line)), '"request":2,"submit":1,"delivery":0')
    assert.deepStrictEqual(await attemptsOf(submit), ["submitting"])
  }, 120_000)

  it("cuts off the rest after the grace period", async () => {
    await using gateway = await start({
      SHUTDOWN_DELAY: "0 seconds",
      SHUTDOWN_GRACE: "1 second"
    })
    const { stream } = await beginWork(gateway, 60_000)
    const cut = stream.catch(() => undefined)
    const began = performance.now()
    const took = await gateway.kill("SIGTERM")
    assert.isAbove(performance.now() - began, 1000)
    assert.isBelow(took, 10_000)
    assert.strictEqual(await gateway.ended, 0, gateway.output)
    assert.include(gateway.output, "interrupts work")
    await cut
  }, 120_000)
})
