/**
 * The same work done by 1, 3 and 6 processes on one Postgres: throughput, and CPU of Postgres per task and per call, with
 * one busy key and with many keys. Slices alternate; figures are medians. See README.md.
 *
 *   node bench/spread.ts [seconds of a slice] [rounds]; --calls=1500 (calls a second), --tasks=60,
 *   --only=calls or tasks, --main=../other/build/main.mjs (another version of the service)
 */
import { fork } from "node:child_process"
import type { ChildProcess, ForkOptions } from "node:child_process"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "pg"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { load } from "./load.ts"
import { median } from "./measures.ts"
import { openLoad } from "./openLoad.ts"
import { cpuMicros, postgresCpuMicros } from "./processes.ts"
import { builtService, startFlags } from "./startFlags.ts"

const numbers = process.argv.slice(2).filter((it) => /^\d+$/u.test(it))
const seconds = Number(numbers[0] ?? 4)
const rounds = Number(numbers[1] ?? 5)
const text = (name: string) =>
  process.argv.find((it) => it.startsWith(`--${name}=`))?.slice(name.length + 3)
const callsASecond = Number(text("calls") ?? 1500)
const tasksASecond = Number(text("tasks") ?? 60)
const only = text("only") ?? ""
const program = text("main") ?? builtService()
const counts = [1, 3, 6]
const keysCount = 64
const token = "operator-token-of-the-bench"
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))
const started: Array<ChildProcess> = []
const start = (file: string, options: ForkOptions) => {
  const child = fork(file, [], { stdio: ["ignore", "inherit", "inherit", "ipc"], ...options })
  started.push(child)
  return child
}

const manage = async (origin: string, path: string, body: object) => {
  const response = await fetch(`${origin}/manage/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body)
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as { readonly id: string; readonly key: string }
}

const makeKey = async (origin: string, name: string) => {
  const { id } = await manage(origin, "/users", { email: `${name}@example.com` })
  await manage(origin, `/users/${id}/top-ups`, { amount: "900000000" })
  const scopes = ["inference"]
  return (await manage(origin, `/users/${id}/api-keys`, { name: "bench", scopes })).key
}

const post = (keys: ReadonlyArray<string>, path: string, body: object) => {
  const text = JSON.stringify(body)
  return (n: number) =>
    `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${keys[n % keys.length]}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

interface Kind {
  readonly name: string
  /** The rate at which Postgres's CPU is measured, so that the work does not depend on the machine's capacity. */
  readonly perSecond: number
  readonly request: (n: number) => string
}

interface Gateway {
  readonly port: number
  readonly pid: number
}

const startGateway = async (folder: string, databaseUrl: string, upstream: number) => {
  const port = await freePort()
  const dataDir = join(folder, `data-${port}`)
  await mkdir(dataDir)
  const child = start(program, {
    execArgv: startFlags,
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      ARTIFACT_STORE: join(folder, "artifacts"),
      PORT: `${port}`,
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `http://127.0.0.1:${upstream}/v1`,
      SIMULATOR_DELAY: "200 millis",
      LOG_LEVEL: "Error"
    }
  })
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      (it) => it.ok,
      () => false
    )
  while (!(await isReady())) await pause(100)
  return { port, pid: child.pid! }
}

const main = async (folder: string) => {
  const databaseUrl = await serverUrl(folder)
  const db = new Client(databaseUrl)
  await db.connect()
  const upstream = await freePort()
  start(here("upstream.ts"), { env: { PATH: process.env.PATH, PORT: `${upstream}` } })
  const gateways: Array<Gateway> = []
  for (let n = 0; n < Math.max(...counts); n += 1) {
    gateways.push(await startGateway(folder, databaseUrl, upstream))
  }
  const origin = `http://127.0.0.1:${gateways[0]!.port}`
  const keys: Array<string> = []
  for (let n = 0; n < keysCount; n += 1) keys.push(await makeKey(origin, `user-${n}`))

  const statusesOf = (all: ReadonlyArray<Record<string, number>>) => {
    const bad = all.flatMap((it) => Object.entries(it)).filter(([status]) => status >= "300")
    if (bad.length > 0) throw new Error(`statuses ${JSON.stringify(bad)}`)
  }
  const idle = async () => {
    const { rows } = await db.query("SELECT 1 FROM runs LIMIT 1")
    return rows.length === 0
  }
  const used = () => ({
    postgres: postgresCpuMicros(folder),
    own: gateways.reduce((sum, { pid }) => sum + cpuMicros(pid), 0)
  })
  /**
   * Keeps the rate. Returns the cost of one request to Postgres and to all processes, until the last task has ended.
   */
  const atRate = async ({ perSecond, request }: Kind, processes: number) => {
    const before = used()
    const some = gateways.slice(0, processes)
    const all = await Promise.all(
      some.map(({ port }) =>
        openLoad({ port, request, seconds, perSecond: perSecond / processes, connectionsMax: 256 })
      )
    )
    statusesOf(all.map(({ statuses }) => statuses))
    while (!(await idle())) await pause(20)
    const after = used()
    const done = all.reduce((sum, { accepted }) => sum + accepted.length, 0)
    return {
      postgres: (after.postgres - before.postgres) / done,
      own: (after.own - before.own) / done
    }
  }
  const asMuch = async ({ request }: Kind, processes: number) => {
    const some = gateways.slice(0, processes)
    const each = { request, seconds, connections: Math.round(48 / processes) }
    const all = await Promise.all(some.map(({ port }) => load({ ...each, port })))
    statusesOf(all.map(({ statuses }) => statuses))
    while (!(await idle())) await pause(20)
    return all.reduce((sum, { perSecond }) => sum + perSecond, 0)
  }

  const chat = { model: "gpt-4o", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] }
  const chatPath = "/v1/chat/completions"
  const create = "/vendors/alibaba/v1/text-to-image-preview/generation"
  const kinds: ReadonlyArray<Kind> = [
    {
      name: "calls, one key",
      perSecond: callsASecond,
      request: post(keys.slice(0, 1), chatPath, chat)
    },
    { name: "calls, 64 keys", perSecond: callsASecond, request: post(keys, chatPath, chat) },
    {
      name: "tasks, one key",
      perSecond: tasksASecond,
      request: post(keys.slice(0, 1), create, { prompt: "A turtle", n: 1 })
    },
    {
      name: "tasks, 64 keys",
      perSecond: tasksASecond,
      request: post(keys, create, { prompt: "A turtle", n: 1 })
    }
  ]
  const restBefore = postgresCpuMicros(folder)
  await pause(seconds * 1000)
  const rest = (postgresCpuMicros(folder) - restBefore) / seconds
  console.log(
    `at rest ${gateways.length} processes cost Postgres ${(rest / 1000).toFixed(1)} ms a second`
  )
  for (const kind of kinds.filter(({ name }) => name.startsWith(only))) {
    const found = counts.map((processes) => ({
      processes,
      costs: new Array<{ postgres: number; own: number }>(),
      rates: new Array<number>()
    }))
    for (let round = -1; round < rounds; round += 1) {
      for (const { costs, processes, rates } of found) {
        const cost = await atRate(kind, processes)
        const rate = round < 0 ? 0 : await asMuch(kind, processes)
        // The first round is a warm-up
        if (round < 0) continue
        costs.push(cost)
        rates.push(rate)
      }
    }
    for (const { costs, processes, rates } of found) {
      console.log(
        `${kind.name}, ${processes} processes: Postgres ${median(costs.map((it) => it.postgres)).toFixed(0)} µs each ` +
          `(${costs.map((it) => it.postgres.toFixed(0)).join(" ")}), processes ${median(costs.map((it) => it.own)).toFixed(0)} µs, ` +
          `at ${kind.perSecond}/s; at most ${median(rates)}/s`
      )
    }
  }
  await db.end()
}

const folder = await mkdtemp(join(tmpdir(), `spread-${process.pid}-`))
try {
  await main(folder)
} finally {
  for (const child of started) child.kill("SIGKILL")
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
