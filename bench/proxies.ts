/** Shared by the benchmarks of proxies: processes on two pinned cores, and the cost of a call or a stream. */
import { execFileSync, spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Pool } from "pg"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { load } from "./load.ts"
import { quantile } from "./measures.ts"
import { postgresCpuMicros, residentMiB, treeCpuMicros } from "./processes.ts"
import { builtService, startEnvironment, startFlags } from "./startFlags.ts"

export const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
export const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** The measured program has a core for itself; load, vendors and Postgres share the other. */
export const proxyCore = "1"
const loadCore = "0"

export const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"))
// Postgres runs as its own user
chmodSync(folder, 0o755)
execFileSync("taskset", ["-p", "-c", loadCore, `${process.pid}`], { stdio: "ignore" })

const children = new Set<ChildProcess>()

/** Starts a program as the leader of a process group, which ends with it. */
export const start = (
  words: ReadonlyArray<string>,
  env: Record<string, string> = {},
  core = proxyCore
): ChildProcess => {
  const child = spawn("taskset", ["-c", core, ...words], {
    env: { ...process.env, ...env },
    cwd: folder,
    detached: true,
    stdio: process.env.SHOW === "1" ? "inherit" : "ignore"
  })
  children.add(child)
  child.once("exit", () => kill(child, "SIGKILL"))
  return child
}

const kill = (child: ChildProcess, signal: NodeJS.Signals) => {
  try {
    process.kill(-child.pid!, signal)
  } catch {
    // The whole group has ended
  }
}

/** Ends a program with all processes of its group. */
export const stop = async (child: ChildProcess, signal: NodeJS.Signals = "SIGTERM") => {
  children.delete(child)
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once("exit", resolve))
  kill(child, signal)
  const late = setTimeout(() => kill(child, "SIGKILL"), 5000)
  await ended
  clearTimeout(late)
}

/**
 * Runs a benchmark with a Postgres. Removes everything that was started and written, even after an error or an
 * interrupt.
 */
export const bench = async (main: () => Promise<void>) => {
  let code = 0
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve())
  }).then(() => (code = 130))
  process.once("exit", () => children.forEach((child) => kill(child, "SIGKILL")))
  await Promise.race([serverUrl(folder).then(main), interrupted]).catch((error: unknown) => {
    console.error(error)
    code = 1
  })
  await Promise.all([...children].map((child) => stop(child)))
  await stopServer(folder)
  rmSync(folder, { recursive: true, force: true })
  process.exit(code)
}

/** Waits for a 2xx response; fails once the program has ended. */
export const reachable = async (url: string, child?: ChildProcess) => {
  for (let tries = 0; tries < 2400; tries += 1) {
    const isOk = await fetch(url).then(
      async (response) => {
        await response.arrayBuffer()
        return response.ok
      },
      () => false
    )
    if (isOk) return
    if (child !== undefined && (child.exitCode ?? child.signalCode) !== null) {
      throw new Error(`${child.spawnargs.join(" ")} ended: ${child.exitCode ?? child.signalCode}`)
    }
    await pause(25)
  }
  throw new Error(`nothing at ${url}`)
}

/** A separate database on the Postgres of this run. */
export const database = async (name: string): Promise<string> => {
  const url = new URL(await serverUrl(folder))
  await query(url.href, `CREATE DATABASE ${name}`)
  url.pathname = `/${name}`
  return url.href
}

const pools = new Map<string, Pool>()

/** Runs a statement on a connection that is kept, because opening one costs Postgres more than most statements. */
export const query = async <Row extends object>(url: string, text: string) => {
  if (!pools.has(url)) {
    const made = new Pool({ connectionString: url, max: 1, idleTimeoutMillis: 0 })
    // The end of Postgres closes its connection
    pools.set(
      url,
      made.on("error", () => {})
    )
  }
  return (await pools.get(url)!.query<Row>(text)).rows
}

/** A server that accepts chat calls. */
export interface Subject {
  readonly name: string
  readonly origin: string
  readonly child: ChildProcess
  readonly headers: Record<string, string>
}

export const startUpstream = async (): Promise<Subject> => {
  const port = await freePort()
  const child = start([process.execPath, here("upstream.ts")], { PORT: `${port}` }, loadCore)
  const origin = `http://127.0.0.1:${port}`
  await reachable(origin, child)
  return { name: "direct", origin, child, headers: {} }
}

/** With a key it is a proxy that only authenticates and relays. */
export const startBareProxy = async (upstream: string, key?: string): Promise<Subject> => {
  const port = await freePort()
  const env = { PORT: `${port}`, UPSTREAM: upstream, ...(key === undefined ? {} : { KEY: key }) }
  const child = start([process.execPath, here("bareProxy.ts")], env)
  const origin = `http://127.0.0.1:${port}`
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  await reachable(origin, child)
  return { name: key === undefined ? "bare proxy" : "relay", origin, child, headers }
}

/**
 * Runs something while load and upstream preempt Postgres, which shares their core. Otherwise a kernel without
 * preemption lets them wait for whole statements, and a percentile measures Postgres instead of the proxy.
 */
export const aheadOfPostgres = async <A>(upstream: Subject, run: () => Promise<A>): Promise<A> => {
  const schedule = (policy: string, priority: string) => {
    for (const pid of [process.pid, upstream.child.pid]) {
      execFileSync("chrt", [policy, "--all-tasks", "--pid", priority, `${pid}`])
    }
  }
  try {
    schedule("--rr", "1")
    return await run()
  } finally {
    schedule("--other", "0")
  }
}

const operator = "operator-token-of-the-bench"

/** Starts a process of this gateway. A second one on the same database cooperates with the first. */
export const startGateway = async (databaseUrl: string, env: Record<string, string>) => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const flags = [...startFlags, ...(process.env.PROF?.split(" ") ?? [])]
  const child = start([process.execPath, ...flags, builtService()], {
    ...startEnvironment,
    PORT: `${port}`,
    BASE_URL: origin,
    DATABASE_URL: databaseUrl,
    DATA_DIR: join(folder, `data${new URL(databaseUrl).pathname.replace("/", "-")}`),
    ADMIN_TOKEN: operator,
    MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
    EGRESS_ALLOW: "127.0.0.1",
    LOG_LEVEL: "Error",
    ...env
  })
  await reachable(`${origin}/readyz`, child)
  return { origin, child }
}

/** A response of the management API, to the operator or with a user's key. */
export const manage = async <A>(origin: string, path: string, body?: unknown): Promise<A> => {
  const response = await fetch(`${origin}/manage/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as A
}

/** A key of a new user with credits. */
export const makeKey = async (origin: string, settings: object = {}) => {
  const email = `${Math.random()}@example.com`
  const user = await manage<{ id: string }>(origin, "/users", { email })
  await manage(origin, `/users/${user.id}/top-ups`, { amount: "100000000" })
  const path = `/users/${user.id}/api-keys`
  const made = { name: "bench", scopes: ["inference"], ...settings }
  const { id, key } = await manage<{ id: string; key: string }>(origin, path, made)
  return { id, user: user.id, headers: { authorization: `Bearer ${key}` } }
}

export const small = {
  model: "gpt-4o",
  max_tokens: 100,
  messages: [{ role: "user", content: "Tell me something in forty words, if you please." }]
}
export const streamed = { stream: true, ...small }

/** The CPU is also shown for the quietest fifth of windows of this length, which exclude most other load. */
const windowMillis = 100

/**
 * Makes as many calls as possible on this many connections, over raw sockets, because the load shares a core with
 * Postgres.
 */
export const press = async (
  { child, headers, name, origin }: Subject,
  body: object,
  connections: number,
  seconds: number
) => {
  const { port } = new URL(origin)
  const text = JSON.stringify(body)
  const lines = Object.entries({
    host: `127.0.0.1:${port}`,
    "content-type": "application/json",
    "content-length": `${Buffer.byteLength(text)}`,
    ...headers
  }).map(([header, value]) => `${header}: ${value}\r\n`)
  const request = `POST /v1/chat/completions HTTP/1.1\r\n${lines.join("")}\r\n${text}`
  let calls = 0
  const used = () => ({
    process: treeCpuMicros(child.pid!),
    postgres: postgresCpuMicros(folder),
    calls
  })
  let last = used()
  const first = last
  let memory = 0
  const between = (a: typeof last, b: typeof last) => ({
    process: (b.process - a.process) / (b.calls - a.calls),
    postgres: (b.postgres - a.postgres) / (b.calls - a.calls)
  })
  const windows: Array<ReturnType<typeof between>> = []
  const watch = setInterval(() => {
    const now = used()
    if (now.calls > last.calls + 20) windows.push(between(last, now))
    last = now
    memory = Math.max(memory, residentMiB(child.pid!))
  }, windowMillis)
  const { p50Millis, p99Millis, perSecond, statuses } = await load({
    port: Number(port),
    connections,
    seconds,
    request: () => request,
    onResponse: () => (calls += 1)
  }).finally(() => clearInterval(watch))
  if (Object.keys(statuses).join() !== "200")
    throw new Error(`${name}: ${JSON.stringify(statuses)}`)
  const whole = between(first, used())
  const low = (field: keyof typeof whole) =>
    quantile(
      windows.map((it) => it[field]),
      0.2
    )
  return {
    perSecond,
    cpu: whole.process,
    postgresCpu: whole.postgres,
    cpuLow: low("process"),
    postgresCpuLow: low("postgres"),
    p50: p50Millis,
    p99: p99Millis,
    memory
  }
}
