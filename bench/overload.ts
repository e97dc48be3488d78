/**
 * Load of twice and ten times the capacity; see README.md. `node bench/overload.ts [seconds]`, options
 * `--only=creates,calls,streams,webhooks`, `--soak=MINUTES`, `--rate=PER_SECOND`.
 */
import { fork } from "node:child_process"
import type { ChildProcess, ForkOptions } from "node:child_process"
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { loadavg, setPriority, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { makeAuthority } from "../test/support/certificates.ts"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { load } from "./load.ts"
import { openLoad } from "./openLoad.ts"
import type { Responses } from "./openLoad.ts"
import { builtService, startFlags } from "./startFlags.ts"

const option = (name: string) =>
  process.argv.find((it) => it.startsWith(`--${name}=`))?.slice(name.length + 3)
const seconds = Number(process.argv.slice(2).find((it) => /^\d+$/u.test(it)) ?? 8)
const soakMinutes = Number(option("soak") ?? 0)
const soakPerSecond = Number(option("rate") ?? 12)
const only = option("only")?.split(",")
const token = "operator-token-of-the-bench"
const usersCount = 16
const connectionsMax = 4000
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** The load measures the service, not its own wait for a core. Only root may do this. */
const prefer = (pid: number) => {
  if (process.getuid?.() === 0) setPriority(pid, -10)
}

const started: Array<ChildProcess> = []
const start = (program: string, words: ReadonlyArray<string>, options: ForkOptions = {}) => {
  const child = fork(program, words, { stdio: ["ignore", "ignore", "inherit", "ipc"], ...options })
  started.push(child)
  return child
}

const residentMb = (pid: number): number =>
  Math.round(
    Number(/VmRSS:\s+(\d+)/u.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
  )
/** The number of open files and sockets. */
const handlesOf = (pid: number) => {
  const folder = `/proc/${pid}/fd`
  const all = readdirSync(folder).map((name) => {
    try {
      return readlinkSync(`${folder}/${name}`)
    } catch {
      return ""
    }
  })
  return { handles: all.length, sockets: all.filter((it) => it.startsWith("socket:")).length }
}

const quantile = (rows: Responses["accepted"], share: number): number => {
  const sorted = rows.map(([, millis]) => millis).toSorted((a, b) => a - b)
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
}

const reachable = async (origin: string) => {
  for (let tries = 0; tries < 1200; tries += 1) {
    const response = await fetch(`${origin}/readyz`).catch(() => undefined)
    await response?.arrayBuffer()
    if (response !== undefined) return
    await pause(50)
  }
  throw new Error(`${origin} did not start`)
}

const manage = async (origin: string, path: string, body: unknown, bearer = token) => {
  const response = await fetch(`${origin}/manage/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as { readonly id: string; readonly key: string }
}

/** The keys of users with credits; with a hook, each user has endpoints there. */
const makeKeys = async (origin: string, name: string, hook?: string) => {
  const keys: Array<string> = []
  for (let n = 0; n < usersCount; n += 1) {
    const { id } = await manage(origin, "/users", { email: `${name}-${n}@example.com` })
    await manage(origin, `/users/${id}/top-ups`, { amount: "900000000" })
    const scopes = ["inference", "manage"]
    const { key } = await manage(origin, `/users/${id}/api-keys`, { name: "bench", scopes })
    keys.push(key)
    const events = ["task.created", "task.succeeded"]
    if (hook !== undefined) {
      await manage(origin, "/webhook-endpoints", { url: hook, events }, key)
    }
  }
  return keys
}

const post = (keys: ReadonlyArray<string>, path: string, body: object) => {
  const text = JSON.stringify(body)
  return (n: number) =>
    `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${keys[n % keys.length]}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

interface Kind {
  readonly name: string
  readonly request: (n: number) => string
}

interface Subject {
  readonly port: number
  readonly pid: number
  readonly kinds: ReadonlyArray<Kind>
}

/** Seconds after the overload until all requests of half a second are accepted, at most `millis`. */
const recovered = (rows: Responses, perSecond: number, millis: number): number => {
  for (let at = 0; at < 20_000; at += 500) {
    const within = ([sent]: readonly [number, number]) => sent >= at && sent < at + 500
    const accepted = rows.accepted.filter(within)
    const isWhole = accepted.length >= (perSecond / 2) * 0.9 && !rows.refused.some(within)
    if (isWhole && quantile(accepted, 0.9) <= millis) return at / 1000
  }
  return Number.NaN
}

const overload = async ({ pid, port }: Subject, { name, request }: Kind) => {
  const closed = { port, request, connections: 64, seconds: 3 }
  await load(closed)
  const { perSecond: capacity } = await load(closed)
  const calm = { port, request, connectionsMax, perSecond: Math.max(5, Math.round(capacity / 4)) }
  const unloaded = await openLoad({ ...calm, seconds: 12 })
  const bound = 3 * quantile(unloaded.accepted, 0.99)
  console.log(
    `${name}: ${capacity}/s by 64 connections; at a quarter of it p50 ${quantile(unloaded.accepted, 0.5)}, ` +
      `p99 ${quantile(unloaded.accepted, 0.99)} ms; resident ${residentMb(pid)} MB; load ${loadavg()[0]?.toFixed(1)}`
  )
  for (const times of [2, 10]) {
    const rows = await openLoad({ ...calm, perSecond: capacity * times, seconds })
    const memory = residentMb(pid)
    const after = await openLoad({ ...calm, seconds: 8 })
    const later = rows.accepted.filter(([at]) => at > 3000)
    console.log(
      `  ${times} times: ${Math.round(rows.accepted.length / seconds)}/s accepted, ` +
        `${Math.round(rows.refused.length / seconds)}/s refused, ${JSON.stringify(rows.statuses)}, ` +
        `${rows.unsent} not sent, ${rows.open} open, ${rows.broken} broken; ` +
        `accepted p50 ${quantile(rows.accepted, 0.5)}, p99 ${quantile(rows.accepted, 0.99)} ms ` +
        `(after 3 s ${quantile(later, 0.99)}, bound ${bound.toFixed(0)}); refused p50 ${quantile(rows.refused, 0.5)}, ` +
        `p99 ${quantile(rows.refused, 0.99)} ms; resident ${memory} MB; ` +
        `recovered after ${recovered(after, calm.perSecond, Math.max(bound, 50))} s`
    )
  }
}

/** Shares of twelve requests in a soak. */
const soakMix = { creates: 1, webhooks: 1, streams: 2, calls: 8 }

/** Runs a mix of everything for minutes, to see what grows. */
const soak = async ({ kinds, pid, port }: Subject, takeHeapMb: () => number) => {
  const mix = new Map<string, number>(Object.entries(soakMix))
  const requests = kinds.flatMap(({ name, request }) =>
    Array.from({ length: mix.get(name) ?? 0 }, () => request)
  )
  const request = (n: number) => (requests[n % requests.length] ?? requests[0]!)(n)
  for (let minute = 0; minute <= soakMinutes; minute += 1) {
    const { handles, sockets } = handlesOf(pid)
    console.log(
      `minute ${minute}: resident ${residentMb(pid)} MB, least heap ${takeHeapMb()} MB, ` +
        `${handles} handles, ${sockets} of them sockets, load ${loadavg()[0]?.toFixed(1)}`
    )
    if (minute === soakMinutes) return
    const rows = await openLoad({
      port,
      request,
      connectionsMax,
      perSecond: soakPerSecond,
      seconds: 60
    })
    console.log(
      `  ${soakPerSecond}/s: ${JSON.stringify(rows.statuses)}, p50 ${quantile(rows.accepted, 0.5)}, ` +
        `p99 ${quantile(rows.accepted, 0.99)} ms, ${rows.broken} broken, ${rows.open} open`
    )
  }
}

/** Makes the service report its heap size every second. */
const reportHeap =
  "data:text/javascript,setInterval(()=>process.send?.(process.memoryUsage().heapUsed),1000).unref()"

const main = async (folder: string) => {
  const databaseUrl = await serverUrl(folder)
  const authority = await makeAuthority()
  const issued = await authority.issue()
  const ca = join(folder, "ca.pem")
  await writeFile(ca, authority.ca)
  const receiver = start(here("receiver.ts"), [JSON.stringify({ ...issued, delayMillis: 0 })])
  prefer(receiver.pid!)
  const hookPort = await new Promise<number>((resolve) =>
    receiver.once("message", (it) => resolve((it as { readonly port: number }).port))
  )
  const upstreamPort = await freePort()
  const environment = { PATH: process.env.PATH, PORT: `${upstreamPort}` }
  prefer(start(here("upstream.ts"), [], { env: environment }).pid!)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const dataDir = join(folder, "data")
  await mkdir(dataDir, { recursive: true })
  const child = start(builtService(), [], {
    execArgv: [...startFlags, "--import", reportHeap],
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      PORT: `${port}`,
      BASE_URL: origin,
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `http://127.0.0.1:${upstreamPort}/v1`,
      // Rendering the sandbox's pictures is not part of the service's load
      SIMULATOR_DELAY: soakMinutes > 0 ? "30 seconds" : "1 hour",
      EGRESS_ALLOW: "127.0.0.1",
      NODE_EXTRA_CA_CERTS: ca,
      LOG_LEVEL: "Error"
    }
  })
  prefer(process.pid)
  await reachable(origin)
  const keys = await makeKeys(origin, "user")
  const hooked = await makeKeys(origin, "hooked", `https://127.0.0.1:${hookPort}/hook`)
  const create = "/vendors/alibaba/v1/text-to-image-preview/generation"
  const chat = { model: "gpt-4o", messages: [{ role: "user", content: "A lighthouse" }] }
  const job = { prompt: "A lighthouse", n: 1 }
  const kinds = [
    { name: "creates", request: post(keys, create, job) },
    { name: "calls", request: post(keys, "/v1/chat/completions", chat) },
    { name: "streams", request: post(keys, "/v1/chat/completions", { ...chat, stream: true }) },
    { name: "webhooks", request: post(hooked, create, job) }
  ].filter(({ name }) => only === undefined || only.includes(name))
  const subject = { port, pid: child.pid!, kinds }
  let leastHeap = Infinity
  child.on("message", (bytes) => {
    leastHeap = Math.min(leastHeap, Number(bytes))
  })
  const takeHeapMb = () => {
    const mb = Math.round(leastHeap / 1048576)
    leastHeap = Infinity
    return mb
  }
  if (soakMinutes > 0) return soak(subject, takeHeapMb)
  for (const kind of kinds) await overload(subject, kind)
}

const folder = await mkdtemp(join(tmpdir(), `overload-${process.pid}-`))
try {
  await main(folder)
} finally {
  for (const child of started) child.kill("SIGKILL")
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
