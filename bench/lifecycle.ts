/**
 * Compares whole tasks with a bare loop, alternating in one run; see README.md.
 * `node bench/lifecycle.ts [tasks] [rounds]`, options `--embedded` (the gateway on the embedded store),
 * `--webhooks` (two deliveries a task), `--waiting=1000,10000` (memory and polls of waiting tasks),
 * `--open=100000` (a start with that many tasks whose polls are due).
 */
import { Effect, Redacted } from "effect"
import { fork } from "node:child_process"
import type { ChildProcess, ForkOptions } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "pg"
import { Agent } from "undici"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"
import { makeAuthority } from "../test/support/certificates.ts"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { jobCatalog } from "./jobCatalog.ts"
import { median } from "./measures.ts"
import { cpuMicros, postgresCpuMicros } from "./processes.ts"
import { builtService, startFlags } from "./startFlags.ts"

const numbers = process.argv.slice(2).filter((it) => /^\d+$/u.test(it))
const tasks = Number(numbers[0] ?? 2000)
const rounds = Number(numbers[1] ?? 3)
const isEmbedded = process.argv.includes("--embedded")
const hasWebhooks = process.argv.includes("--webhooks")
const waitingCounts = (process.argv.find((it) => it.startsWith("--waiting="))?.slice(10) ?? "")
  .split(",")
  .filter((it) => it !== "")
  .map(Number)
const openCount = Number(process.argv.find((it) => it.startsWith("--open="))?.slice(7) ?? 0)
const clients = 64
const usersCount = 16
const token = "operator-token-of-the-bench"
const path = "/vendors/fal/v1/bench/generation"
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))
const agent = new Agent({ connections: clients })

const started: Array<ChildProcess> = []
const start = (program: string, words: ReadonlyArray<string>, options: ForkOptions = {}) => {
  const child = fork(program, words, { stdio: ["ignore", "inherit", "inherit", "ipc"], ...options })
  started.push(child)
  return child
}
const message = <A>(child: ChildProcess) =>
  new Promise<A>((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`a process ended with ${code}`))
    child.once("exit", onExit)
    child.once("message", (value) => {
      child.off("exit", onExit)
      resolve(value as A)
    })
  })

/** A process under test. */
interface Contender {
  readonly name: string
  readonly pid: number
  /** Creates a task of the n-th client and returns its path. */
  readonly create: (n: number, prompt: string) => Promise<string>
  /** Waits until a task has ended. Returns the milliseconds since its create. */
  readonly ended: (n: number, place: string) => Promise<number>
  /** Stops it, runs something on its database, and starts it again. Returns the milliseconds until it is ready. */
  readonly restart?: (meanwhile: (databaseUrl: string) => Promise<unknown>) => Promise<number>
  /** The number of transactions of its database so far. */
  readonly transactions: () => Promise<number>
}

const call = async (
  origin: string,
  place: string,
  headers: Record<string, string>,
  body?: unknown
): Promise<Answer> => {
  const response = await agent.request({
    origin,
    path: place,
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", ...headers },
    headersTimeout: 600_000,
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${response.statusCode} ${text}`)
  return JSON.parse(text) as Answer
}

/** The response members that are read here. */
interface Answer {
  readonly id: string
  readonly key: string
  readonly millis: number
  readonly task_info: {
    readonly id: string
    readonly status: string
    readonly created_at: string
    readonly updated_at: string
  }
}

const query = async (url: string, text: string) => {
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query<{ n: string }>(text)
  await client.end()
  return Number(rows[0]?.n)
}

const database = async (admin: URL, name: string) => {
  await query(admin.href, `CREATE DATABASE ${name}`)
  const url = new URL(admin)
  url.pathname = `/${name}`
  const transactions = () =>
    query(admin.href, `SELECT xact_commit AS n FROM pg_stat_database WHERE datname = '${name}'`)
  return { href: url.href, transactions }
}

const startBare = async (
  admin: URL,
  folder: string,
  vendorUrl: string,
  ca: string
): Promise<Contender> => {
  const { href, transactions } = await database(admin, "bare")
  const store = layerPostgres({ url: Redacted.make(href), timeouts: "endless" })
  await Effect.runPromise(Effect.scoped(Effect.provide(Migrations.migrate(), store)))
  const users = Array.from({ length: usersCount }, () => randomUUID())
  for (const id of users) {
    await query(
      href,
      `INSERT INTO users (id, email, created_at) VALUES ('${id}', '${id}@example.com', now())`
    )
    await query(href, `INSERT INTO wallets (user_id) VALUES ('${id}')`)
    await query(
      href,
      `SELECT 1 AS n FROM wallet_top_up('${id}', 'top_up', 900000000000000, '${id}', null, null, now())`
    )
  }
  const dataDir = join(folder, "bare")
  await mkdir(dataDir)
  const hook = hasWebhooks ? { url: receiver.url, ca } : undefined
  const setting = { dataDir, databaseUrl: href, hook, users, vendorUrl }
  const child = start(here("bareTasks.ts"), [JSON.stringify(setting)], { execArgv: startFlags })
  const { port } = await message<{ port: number }>(child)
  const origin = `http://127.0.0.1:${port}`
  return {
    name: "bare loop",
    pid: child.pid!,
    create: async (n, prompt) =>
      `/tasks/${(await call(origin, "/tasks", { "x-user": `${n}` }, { prompt })).id}`,
    ended: async (_n, place) => (await call(origin, place, {})).millis,
    transactions
  }
}

/** The gateway with an account of credits, and its users' keys. */
const startGateway = async (
  admin: URL,
  folder: string,
  vendorUrl: string,
  ca: string
): Promise<Contender> => {
  const { href, transactions } = await database(admin, "gateway")
  const dataDir = join(folder, "gateway")
  await mkdir(dataDir)
  const files = { catalog: join(folder, "catalog.json"), ca: join(folder, "ca.pem") }
  await writeFile(files.catalog, JSON.stringify(jobCatalog))
  await writeFile(files.ca, ca)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const spawn = () =>
    start(builtService(), [], {
      execArgv: startFlags,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: {
        PATH: process.env.PATH,
        ...(isEmbedded ? {} : { DATABASE_URL: href }),
        DATA_DIR: dataDir,
        HOST: "127.0.0.1",
        PORT: `${port}`,
        BASE_URL: origin,
        ADMIN_TOKEN: token,
        MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
        EGRESS_ALLOW: "127.0.0.1",
        NODE_EXTRA_CA_CERTS: files.ca,
        CATALOG_FILE: files.catalog,
        FAL_API_KEY: "a:b;polls=100000",
        FAL_BASE_URL: vendorUrl,
        LOG_LEVEL: "Error"
      }
    })
  let child = spawn()
  await ready(child, origin)
  const keys = await makeKeys(origin)
  const authorization = (n: number) => ({ authorization: `Bearer ${keys[n % keys.length]}` })
  return {
    name: isEmbedded ? "gateway, embedded" : "gateway",
    get pid() {
      return child.pid!
    },
    restart: async (meanwhile) => {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGTERM")
      await ended
      await meanwhile(href)
      const from = performance.now()
      child = spawn()
      await ready(child, origin)
      return performance.now() - from
    },
    create: async (n, prompt) => {
      const { task_info } = await call(origin, path, authorization(n), { prompt, n: 1 })
      return `${path}/${task_info.id}`
    },
    ended: async (n, place) => {
      while (true) {
        const headers = { ...authorization(n), prefer: "wait=60" }
        const { task_info: task } = await call(origin, place, headers)
        if (task.status === "failed") throw new Error(`${place} failed`)
        if (task.status === "completed") {
          return Date.parse(task.updated_at) - Date.parse(task.created_at)
        }
      }
    },
    transactions
  }
}

const ready = async (child: ChildProcess, origin: string) => {
  for (let tries = 0; tries < 600 && child.exitCode === null; tries += 1) {
    const response = await fetch(`${origin}/readyz`).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.ok === true) return
    await pause(50)
  }
  throw new Error("the gateway did not start")
}

const makeKeys = async (origin: string) => {
  const operator = { authorization: `Bearer ${token}` }
  const keys: Array<string> = []
  for (let n = 0; n < usersCount; n += 1) {
    const { id } = await call(origin, "/manage/v1/users", operator, { email: `${n}@example.com` })
    const user = `/manage/v1/users/${id}`
    await call(origin, `${user}/top-ups`, operator, { amount: "900000000" })
    const { key } = await call(origin, `${user}/api-keys`, operator, {
      name: "bench",
      scopes: ["inference", "manage"]
    })
    keys.push(key)
    if (!hasWebhooks) continue
    const events = ["task.created", "task.succeeded"]
    const authorization = `Bearer ${key}`
    await call(
      origin,
      "/manage/v1/webhook-endpoints",
      { authorization },
      { url: receiver.url, events }
    )
  }
  return keys
}

/** Creates this many tasks with all clients and waits until each has ended. */
const run = async ({ create, ended }: Contender, count: number) => {
  const millis: Array<number> = []
  const client = async (n: number) => {
    const places: Array<string> = []
    for (let made = n; made < count; made += clients) places.push(await create(n, "a lighthouse"))
    for (const place of places) millis.push(await ended(n, place))
  }
  await Promise.all(Array.from({ length: clients }, (_, n) => client(n)))
  return millis.toSorted((a, b) => a - b)
}

interface Round {
  readonly perSecond: number
  readonly cpuMillis: number
  readonly postgresMillis: number
  readonly transactions: number
  readonly p50: number
  readonly p99: number
}

const measure = async (contender: Contender, folder: string): Promise<Round> => {
  const before = {
    cpu: cpuMicros(contender.pid),
    postgres: postgresCpuMicros(folder),
    transactions: await contender.transactions(),
    at: performance.now()
  }
  const millis = await run(contender, tasks)
  const seconds = (performance.now() - before.at) / 1000
  return {
    perSecond: tasks / seconds,
    cpuMillis: (cpuMicros(contender.pid) - before.cpu) / 1000 / tasks,
    postgresMillis: (postgresCpuMicros(folder) - before.postgres) / 1000 / tasks,
    transactions: ((await contender.transactions()) - before.transactions) / tasks,
    p50: millis[Math.floor(tasks * 0.5)] ?? Number.NaN,
    p99: millis[Math.floor(tasks * 0.99)] ?? Number.NaN
  }
}

const show = (name: string, measured: ReadonlyArray<Round>) => {
  const of = (field: keyof Round) => median(measured.map((it) => it[field]))
  console.log(
    [
      `${name}: ${of("perSecond").toFixed(0)} tasks/s`,
      `CPU of a task ${of("cpuMillis").toFixed(2)} ms, Postgres ${of("postgresMillis").toFixed(2)} ms`,
      `${of("transactions").toFixed(1)} transactions`,
      `create to completed p50 ${of("p50").toFixed(0)}, p99 ${of("p99").toFixed(0)} ms`,
      `rounds ${measured.map(({ perSecond }) => perSecond.toFixed(0)).join(" ")}`
    ].join(", ")
  )
}

/** Memory and polls while this many tasks wait at the vendor. */
const wait = async (contender: Contender, vendor: ChildProcess, counts: ReadonlyArray<number>) => {
  console.log(`${contender.name}: resident ${residentMb(contender.pid)} MB before tasks wait`)
  let made = 0
  for (const count of counts) {
    const client = async (n: number) => {
      while (made < count) {
        made += 1
        await contender.create(n, "wait")
      }
    }
    await Promise.all(Array.from({ length: clients }, (_, n) => client(n)))
    await pause(5000)
    await askVendor(vendor, "figures")
    const cpu = cpuMicros(contender.pid)
    await pause(20_000)
    const { lateness, polls } = await askVendor(vendor, "figures")
    const micros = (cpuMicros(contender.pid) - cpu) / polls
    const sorted = lateness.toSorted((a, b) => a - b)
    const at = (share: number) =>
      (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(0)
    console.log(
      `${contender.name}: ${count} waiting, resident ${residentMb(contender.pid)} MB, ${polls / 20} polls/s, ` +
        `CPU a poll ${micros.toFixed(0)} µs, lateness p50 ${at(0.5)}, p99 ${at(0.99)} ms`
    )
  }
}

/** Copies of an unfinished task at the vendor, due over the next ten seconds, like an old job. */
const copies = (count: number) => `
  WITH made AS (SELECT gen_random_uuid() AS id, n FROM generate_series(1, ${count}) n),
  task AS (
    INSERT INTO tasks SELECT (t).* FROM (
      SELECT jsonb_populate_record(t, jsonb_build_object('id', m.id)) AS t FROM tasks t, made m
      WHERE t.status = 'processing') copied
  ), attempt AS (
    INSERT INTO vendor_attempts SELECT (a).* FROM (
      SELECT jsonb_populate_record(a, jsonb_build_object('task_id', m.id)) AS a FROM vendor_attempts a, made m
      WHERE a.state = 'submitted' AND a.task_id IN (SELECT task_id FROM runs)) copied
  )
  INSERT INTO runs SELECT (r).* FROM (
    SELECT jsonb_populate_record(r, jsonb_build_object('task_id', m.id,
      'due_at', now() + interval '10 seconds' * m.n / ${count})) AS r FROM runs r, made m) copied`

/**
 * A start with many tasks whose polls are due: the time until it is ready and until the first poll, and the rates
 * afterwards.
 */
const open = async (contender: Contender, vendor: ChildProcess) => {
  if (contender.restart === undefined || openCount === 0) return
  await contender.create(0, "wait")
  await pause(2000)
  await askVendor(vendor, "figures")
  const readyMillis = await contender.restart((url) => query(url, copies(openCount)))
  const from = performance.now()
  let first = Number.NaN
  for (let second = 1; second <= 60; second += 1) {
    await pause(1000)
    const { polls } = await askVendor(vendor, "figures")
    if (Number.isNaN(first) && polls > 1) first = (performance.now() - from) / 1000
    if (second % 15 !== 0) continue
    const mb = residentMb(contender.pid)
    console.log(`${openCount} open tasks, after ${second} s: resident ${mb} MB, ${polls} polls/s`)
  }
  console.log(
    `${openCount} open tasks: ready after ${readyMillis.toFixed(0)} ms, polls within ${first.toFixed(1)} s of it`
  )
}

const askVendor = (vendor: ChildProcess, what: string) => {
  const response = message<{ readonly lateness: ReadonlyArray<number>; readonly polls: number }>(
    vendor
  )
  vendor.send(what)
  return response
}

const receiver = { url: "" }

const residentMb = (pid: number): number =>
  Math.round(
    Number(/VmRSS:\s+(\d+)/u.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
  )

const main = async (folder: string) => {
  const authority = await makeAuthority()
  const issued = await authority.issue()
  const hooks = start(here("receiver.ts"), [JSON.stringify({ ...issued, delayMillis: 0 })])
  receiver.url = `https://127.0.0.1:${(await message<{ port: number }>(hooks)).port}/hook`
  const vendor = start(here("jobVendor.ts"), [])
  const vendorUrl = `http://127.0.0.1:${(await message<{ port: number }>(vendor)).port}`
  const admin = new URL(await serverUrl(folder))
  const bare = await startBare(admin, folder, vendorUrl, authority.ca)
  const gateway = await startGateway(admin, folder, vendorUrl, authority.ca)
  console.log(`resident, idle: bare ${residentMb(bare.pid)}, gateway ${residentMb(gateway.pid)} MB`)
  const measured = new Map<Contender, Array<Round>>([
    [bare, []],
    [gateway, []]
  ])
  for (const contender of measured.keys()) await run(contender, 200)
  for (let round = 0; round < rounds; round += 1) {
    for (const [contender, list] of measured) list.push(await measure(contender, folder))
  }
  for (const [contender, list] of measured) show(contender.name, list)
  const share = (field: keyof Round) => {
    const [bares = [], gateways = []] = [...measured.values()]
    return median(gateways.map((it, n) => it[field] / (bares[n]?.[field] ?? Number.NaN)))
  }
  if (rounds > 0) {
    console.log(
      `gateway of bare: ${share("perSecond").toFixed(2)} of its tasks (goal 0.60), ${share("cpuMillis").toFixed(2)} times its CPU (goal 2)`
    )
  }
  console.log(
    `resident, after: bare ${residentMb(bare.pid)}, gateway ${residentMb(gateway.pid)} MB`
  )
  await open(gateway, vendor)
  if (waitingCounts.length === 0) return
  for (const contender of measured.keys()) {
    await wait(contender, vendor, waitingCounts)
    await askVendor(vendor, "finish")
    await pause(15_000)
  }
}

const folder = await mkdtemp(join(tmpdir(), `gateway-postgres-${process.pid}-`))
try {
  await main(folder)
} finally {
  for (const child of started) child.kill("SIGTERM")
  await Promise.all(
    started.map((child) => child.exitCode ?? new Promise((resolve) => child.once("exit", resolve)))
  )
  await agent.destroy()
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
