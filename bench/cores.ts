/**
 * One process against several behind one port (`PROCESSES`), alternating, on all cores of the machine, which load,
 * upstream and Postgres share. `node bench/cores.ts [processes] [rounds]`
 */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "pg"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { load } from "./load.ts"
import { median } from "./measures.ts"
import { cpuMicros, postgresCpuMicros, treeCpuMicros } from "./processes.ts"
import { builtService, startFlags } from "./startFlags.ts"

const processes = Number(process.argv[2] ?? 2)
const rounds = Number(process.argv[3] ?? 3)
const seconds = 4
const connections = 64
const token = "operator-token-of-the-bench"
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))
const folder = mkdtempSync(join(tmpdir(), "gateway-cores-"))
// Postgres runs as its own user
chmodSync(folder, 0o755)
const children: Array<ChildProcess> = []

interface Subject {
  readonly name: string
  readonly port: number
  readonly keys: ReadonlyArray<string>
  readonly stop: () => Promise<void>
  /** CPU time of the supervisor and its processes. */
  readonly micros: () => number
}

const start = async (count: number, admin: URL, ports: { upstream: number; silent: number }) => {
  const database = `with_${count}`
  const client = new Client(admin.href)
  await client.connect()
  await client.query(`CREATE DATABASE ${database}`)
  await client.end()
  const url = new URL(admin)
  url.pathname = `/${database}`
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [...startFlags, builtService()], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: process.env.PATH,
      PROCESSES: `${count}`,
      DB_POOL: "20",
      SHUTDOWN_DELAY: "0 seconds",
      DATABASE_URL: url.href,
      DATA_DIR: join(folder, database),
      PORT: `${port}`,
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `http://127.0.0.1:${ports.upstream}/v1`,
      DASHSCOPE_API_KEY: "sk-vendor;concurrent=1",
      DASHSCOPE_BASE_URL: `http://127.0.0.1:${ports.silent}/api/v1`,
      EGRESS_ALLOW: "127.0.0.1",
      LOG_LEVEL: "Error"
    }
  })
  children.push(child)
  for (let tries = 0; tries < 600; tries += 1) {
    const text = await fetch(`${origin}/metrics`).then(
      (it) => it.text(),
      () => ""
    )
    if (text.includes(`gateway_processes ${count}\n`)) break
    await pause(100)
  }
  const manage = async (path: string, body: unknown) => {
    const response = await fetch(`${origin}/manage/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    return (await response.json()) as { id: string; key: string }
  }
  const keys = await Promise.all(
    Array.from({ length: 16 }, async (_, n) => {
      const { id } = await manage("/users", { email: `${n}@example.com` })
      await manage(`/users/${id}/top-ups`, { amount: "100000000" })
      return (await manage(`/users/${id}/api-keys`, { name: "x", scopes: ["inference"] })).key
    })
  )
  const pid = child.pid!
  const micros = () => treeCpuMicros(pid)
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve))
    child.kill("SIGTERM")
    await ended
  }
  return { stop, name: `${count} process${count === 1 ? "" : "es"}`, port, keys, micros }
}

const kinds = {
  calls: {
    path: "/v1/chat/completions",
    body: JSON.stringify({
      model: "gpt-4o",
      max_tokens: 100,
      messages: [{ role: "user", content: "Tell me something in forty words, if you please." }]
    })
  },
  creates: {
    path: "/vendors/alibaba/v1/text-to-image-max/generation",
    body: JSON.stringify({ prompt: "x" })
  }
}

const measure = async (subject: Subject, { body, path }: (typeof kinds)["calls"]) => {
  const texts = subject.keys.map(
    (key) =>
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
  const used = () => ({
    gateway: subject.micros(),
    postgres: postgresCpuMicros(folder),
    rest: cpuMicros(process.pid) + cpuMicros(children[0]!.pid!)
  })
  const before = used()
  const { p99Millis, perSecond, statuses } = await load({
    port: subject.port,
    connections,
    seconds,
    request: (n) => texts[n % texts.length]!
  })
  const after = used()
  const count = perSecond * seconds
  return {
    perSecond,
    p99Millis,
    accepted:
      Object.entries(statuses).reduce((sum, [it, n]) => sum + (it < "3" ? n : 0), 0) / count,
    gateway: (after.gateway - before.gateway) / count,
    postgres: (after.postgres - before.postgres) / count,
    rest: (after.rest - before.rest) / count
  }
}
type Measured = Awaited<ReturnType<typeof measure>>

try {
  const upstream = await freePort()
  children.push(
    spawn(process.execPath, [here("upstream.ts")], { env: { ...process.env, PORT: `${upstream}` } })
  )
  const silentServer = createServer(() => {})
  const silent = await freePort()
  await new Promise<void>((resolve) => silentServer.listen(silent, "127.0.0.1", resolve))
  const admin = new URL(await serverUrl(folder))
  const ports = { upstream, silent }
  const subjects = [await start(1, admin, ports), await start(processes, admin, ports)]
  for (const [kind, request] of Object.entries(kinds)) {
    const measured = new Map<string, Array<Measured>>()
    // The first round is a warm-up
    for (let round = -1; round < rounds; round += 1) {
      for (const subject of subjects) {
        const it = await measure(subject, request)
        if (round >= 0) measured.set(subject.name, [...(measured.get(subject.name) ?? []), it])
      }
    }
    for (const [name, all] of measured) {
      const of = (field: keyof Measured) => median(all.map((it) => it[field]))
      console.log(
        `${kind}, ${name}: ${of("perSecond").toFixed(0)}/s, ${(100 * of("accepted")).toFixed(0)} % accepted, p99 ${of("p99Millis").toFixed(1)} ms; CPU µs: gateway ${of("gateway").toFixed(0)}, Postgres ${of("postgres").toFixed(0)}, load and upstream ${of("rest").toFixed(0)}`
      )
    }
  }
  for (const { stop } of subjects) await stop()
} finally {
  for (const child of children) child.kill("SIGKILL")
  await stopServer(folder)
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
