import { Effect, Exit, Scope } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { roleVariable } from "../../../src/cli/processes/Messages.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"

/** docs/reference/processes.md#all-cores-of-a-machine */

const childrenOf = (gateway: GatewayProcess): ReadonlyArray<number> =>
  readFileSync(`/proc/${gateway.pid}/task/${gateway.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter((pid) => pid !== "")
    .map(Number)

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const metricsOf = async (gateway: GatewayProcess): Promise<ReadonlyArray<string>> =>
  (await (await fetch(`${gateway.url}/metrics`)).text()).split("\n")

const valueOf = (lines: ReadonlyArray<string>, series: string): number => {
  const found = lines.filter((line) => line.startsWith(`${series} `))
  assert.strictEqual(found.length, 1, `${series}: ${found.join()}`)
  return Number(found[0]!.slice(series.length + 1))
}

const serving = (gateway: GatewayProcess, count: number) =>
  until(async () => valueOf(await metricsOf(gateway), "gateway_processes") === count, {
    what: `${count} processes`
  })

const start = async (databaseUrl: string, env: Record<string, string>) => {
  const gateway = await GatewayProcess.start({ databaseUrl, env: { PROCESSES: "2", ...env } })
  await serving(gateway, 2)
  return gateway
}

const scope = Scope.makeUnsafe()
let databaseUrl: string
beforeAll(async () => {
  databaseUrl = (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
}, 120_000)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** One request on a separate connection. Returns the status line or the failure. */
const requestOnce = (url: string): Promise<string> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    let text = ""
    const timer = setTimeout(() => socket.destroy(new Error("no response")), 30_000)
    socket.on("connect", () =>
      socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    )
    socket.on("data", (chunk) => (text += chunk.toString()))
    socket.on("error", (error) => resolve(error.message))
    socket.on("close", () => {
      clearTimeout(timer)
      resolve(text.split("\r\n", 1)[0] || "closed without a response")
    })
  })

/** Sends requests until it is stopped: on new connections, on kept connections, and streams of three seconds. */
const startLoad = (gateway: GatewayProcess, key: string) => {
  const load = { isOn: true, requests: 0, faults: [] as Array<string> }
  const repeat = async (work: () => Promise<string | undefined>) => {
    while (load.isOn) {
      const fault = await work().catch((cause) => `${cause} ${(cause as Error).cause}`)
      load.requests += 1
      if (fault !== undefined) load.faults.push(fault)
      await pause(25)
    }
  }
  const chat = async (stream: boolean) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "gpt-4o",
        stream,
        max_tokens: 50,
        messages: [{ role: "user", content: "hello" }]
      })
    })
    const text = await response.text()
    if (response.status !== 200) return `${response.status} ${text}`
    return stream && !text.includes("[DONE]") ? "a stream was cut" : undefined
  }
  const clients = [
    ...Array.from({ length: 4 }, () =>
      repeat(async () => {
        const line = await requestOnce(gateway.url)
        return line === "HTTP/1.1 200 OK" ? undefined : line
      })
    ),
    repeat(() => chat(false)),
    repeat(() => chat(true)),
    repeat(async () => {
      const response = await fetch(`${gateway.url}/readyz`)
      const text = await response.text()
      return response.status === 200 ? undefined : `readyz: ${response.status} ${text}`
    })
  ]
  const stop = async () => {
    load.isOn = false
    await Promise.all(clients)
    return load
  }
  return { stop, requests: () => load.requests }
}

/** Loaded before the program, so that the first process of the group never exits. */
const hangsAtExit = `data:text/javascript,${encodeURIComponent(`
  if (process.env.${roleVariable} === "first") {
    process.exit = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }`)}`

const service = 'gateway_http_request_duration_seconds_count{kind="service",outcome="success"}'

describe("PROCESSES", { timeout: 240_000 }, () => {
  const catalog = join(temporaryFolder("group-catalog"), "catalog.json")
  let gateway: GatewayProcess
  let key: string

  /** The tests use one group, one after the other; the last test ends it. */
  beforeAll(async () => {
    writeFileSync(catalog, "{}")
    gateway = await start(databaseUrl, {
      DB_POOL: "6",
      CATALOG_FILE: catalog,
      SHUTDOWN_DELAY: "1 second",
      SIMULATOR_DELAY: "500 millis"
    })
    key = await gateway.key()
  }, 120_000)
  afterAll(() => gateway?.close())

  it("starts equal processes behind one port, adds up their metrics, and restarts one that dies", async () => {
    const pids = childrenOf(gateway)
    assert.strictEqual(pids.length, 2)
    assert.strictEqual(gateway.output.match(/Live vendors/gu)?.length, 1)

    // Connections are spread over both processes
    for (let n = 0; n < 60; n += 1)
      assert.strictEqual(await requestOnce(gateway.url), "HTTP/1.1 200 OK")
    const before = valueOf(await metricsOf(gateway), service)
    assert.isAtLeast(before, 60)
    for (let n = 0; n < 5; n += 1) {
      assert.isAtLeast(valueOf(await metricsOf(gateway), service), before)
    }
    const lines = await metricsOf(gateway)
    assert.strictEqual(valueOf(lines, "gateway_wallet_drift"), 0)
    assert.strictEqual(valueOf(lines, "gateway_store_up"), 1)
    assert.isAbove(valueOf(lines, "process_resident_memory_bytes"), 200 * 1024 * 1024)

    process.kill(pids[1]!, "SIGKILL")
    await until(() => gateway.output.includes(`The process ${pids[1]} died (SIGKILL)`))
    assert.strictEqual((await fetch(`${gateway.url}/readyz`)).status, 200)
    await serving(gateway, 2)
    const after = await metricsOf(gateway)
    assert.isAtLeast(valueOf(after, service), before)
    assert.strictEqual(valueOf(after, 'gateway_process_restarts_total{reason="death"}'), 1)
    const [first, second] = childrenOf(gateway)
    assert.strictEqual(first, pids[0])
    assert.notInclude(pids, second)
    assert.strictEqual((await gateway.call("GET", "/manage/v1/wallet")).status, 200)
  })

  it("SIGHUP reloads the catalog once for all processes", async () => {
    writeFileSync(
      catalog,
      JSON.stringify({
        change: { "text-to-image-max": { price: { per: "image", amount: "9.00" } } }
      })
    )
    process.kill(gateway.pid!, "SIGHUP")
    await until(() => gateway.output.includes("SIGHUP: the catalog"))
    const path = "/vendors/alibaba/v1/text-to-image-max/generation?dry_run=true"
    for (let n = 0; n < 10; n += 1) {
      await until(
        async () =>
          (await gateway.call("POST", path, { prompt: "a" })).json.quote?.amount === "9.00"
      )
    }
    assert.strictEqual(gateway.output.match(/SIGHUP: the catalog/gu)?.length, 1)
  })

  it("restarts a process that dies until it can start, for example with a faulty catalog", async () => {
    const [good, [killed = 0, kept]] = [readFileSync(catalog), childrenOf(gateway)]
    writeFileSync(catalog, '{"change": {"none": {}}}')
    process.kill(killed, "SIGKILL")
    await until(() => gateway.output.includes("died (status 1); starting another one in 2s"))
    assert.include(gateway.output, `CATALOG_FILE ${catalog}: #/change/none:`)
    assert.strictEqual((await fetch(`${gateway.url}/readyz`)).status, 200)
    writeFileSync(catalog, good)
    await serving(gateway, 2)
    assert.strictEqual(childrenOf(gateway)[0], kept)
  })

  it("SIGUSR2 replaces the processes one after another; no connection is lost, no stream is cut, and the service stays ready", async () => {
    const before = childrenOf(gateway)
    const { requests: requestsOf, stop } = startLoad(gateway, key)
    await until(() => requestsOf() > 50)
    const counted = valueOf(await metricsOf(gateway), service)
    process.kill(gateway.pid!, "SIGUSR2")
    await until(() => gateway.output.includes("every process was replaced"))
    const replaced = requestsOf()
    await until(() => requestsOf() > replaced + 50)
    const { faults, requests } = await stop()
    assert.deepStrictEqual(faults, [])
    assert.isAbove(requests, 100)
    assert.strictEqual(childrenOf(gateway).length, 2)
    for (const pid of childrenOf(gateway)) assert.notInclude(before, pid)
    const lines = await metricsOf(gateway)
    assert.isAbove(valueOf(lines, service), counted)
    assert.strictEqual(valueOf(lines, 'gateway_process_restarts_total{reason="request"}'), 2)
    assert.strictEqual(valueOf(lines, "gateway_processes"), 2)
    assert.strictEqual(valueOf(lines, "gateway_wallet_drift"), 0)
  })

  it("SIGTERM ends all processes in order", async () => {
    const pids = childrenOf(gateway)
    assert.strictEqual(pids.length, 2)
    await gateway.kill("SIGTERM")
    assert.strictEqual(await gateway.ended, 0)
    assert.notInclude(gateway.output, "interrupts work")
    for (const pid of pids) assert.throws(() => process.kill(pid, 0))
  })

  it("SIGUSR2 kills a process that does not end within its grace period, and replaces the next one", async () => {
    await using gateway = await start(databaseUrl, {
      NODE_OPTIONS: `--import=${hangsAtExit}`,
      SHUTDOWN_DELAY: "0 seconds",
      SHUTDOWN_GRACE: "1 second"
    })
    const before = childrenOf(gateway)
    process.kill(gateway.pid!, "SIGUSR2")
    await until(() => gateway.output.includes("every process was replaced"))
    for (const pid of before) assert.throws(() => process.kill(pid, 0))
    assert.strictEqual((await fetch(`${gateway.url}/readyz`)).status, 200)
  })

  it("answers the requests that wait for the supervisor when it is killed", async () => {
    await using gateway = await start(databaseUrl, { SHUTDOWN_GRACE: "3 seconds" })
    const pids = childrenOf(gateway)
    process.kill(gateway.pid!, "SIGSTOP")
    const waiting = ["/readyz", "/metrics"].map((path) =>
      fetch(gateway.url + path).then(({ status }) => status, String)
    )
    // The processes accept these connections after the ones above
    for (let round = 0; round < 50; round += 1) await requestOnce(gateway.url)
    await gateway.kill()
    assert.deepStrictEqual(await Promise.all(waiting), [503, 200])
    await until(() => pids.every((pid) => !isAlive(pid)))
  })
})
