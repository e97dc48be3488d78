/**
 * Twelve attacks by one tenant or by anonymous clients, and their effect on another tenant; see README.md. `node
 * bench/hostile.ts [seconds] [--only=part of a name,…]`
 */
import { fork } from "node:child_process"
import type { ChildProcess, ForkOptions } from "node:child_process"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { loadavg, setPriority, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { attacks } from "./attacks.ts"
import type { Target } from "./attacks.ts"
import { openLoad } from "./openLoad.ts"
import { builtService, startFlags } from "./startFlags.ts"

const seconds = Number(process.argv.slice(2).find((it) => /^\d+$/u.test(it)) ?? 10)
const only = process.argv
  .find((it) => it.startsWith("--only="))
  ?.slice(7)
  .split(",")
const token = "operator-token-of-the-bench"
/** Requests of each kind per second. */
const victimRate = 20
const ratioMax = 3
const create = "/vendors/alibaba/v1/text-to-image-preview/generation"
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Only root may do this. The service is measured, not which program gets a core. Programs started later inherit it. */
const prefer = (pid: number, priority: number) => {
  if (process.getuid?.() === 0) setPriority(pid, priority)
}

const started: Array<ChildProcess> = []
const start = (program: string, words: ReadonlyArray<string>, options: ForkOptions = {}) => {
  const child = fork(program, words, { stdio: ["ignore", "ignore", "inherit", "ipc"], ...options })
  started.push(child)
  return child
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

const post = async <A>(url: string, body: unknown, bearer: string): Promise<A> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as A
}

const makeKey = async (origin: string, name: string, hasCredits: boolean) => {
  const users = `${origin}/manage/v1/users`
  const { id } = await post<{ id: string }>(users, { email: `${name}@example.com` }, token)
  if (hasCredits) await post(`${users}/${id}/top-ups`, { amount: "900000000" }, token)
  const scopes = ["inference", "manage"]
  const made = await post<{ key: string }>(`${users}/${id}/api-keys`, { name, scopes }, token)
  return made.key
}

const makeTask = async (origin: string, key: string) => {
  const body = { prompt: "A lighthouse", n: 1 }
  const made = await post<{ task_info: { id: string } }>(`${origin}${create}`, body, key)
  return made.task_info.id
}

const requestOf = (method: string, path: string, key: string, body?: object) => {
  const text = body === undefined ? "" : JSON.stringify(body)
  const head = `${method} ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\n`
  const type = `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`
  return `${head}${body === undefined ? "" : type}\r\n${text}`
}

interface Noticed {
  readonly p99: number
  /** 429, 503, broken off, or without a response. */
  readonly lost: number
}

type Figures = Record<"creates" | "polls" | "calls", Noticed>

const p99 = (rows: ReadonlyArray<readonly [number, number]>): number =>
  rows.map(([, millis]) => millis).toSorted((a, b) => a - b)[Math.floor(rows.length * 0.99)] ?? NaN

const measure = async (port: number, key: string, task: string): Promise<Figures> => {
  const chat = { model: "gpt-4o", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] }
  const one = async (request: string): Promise<Noticed> => {
    const load = { port, perSecond: victimRate, seconds, connectionsMax: 200 }
    const rows = await openLoad({ ...load, request: () => request })
    const { accepted, broken, open, refused, unsent } = rows
    return { p99: p99(accepted), lost: refused.length + broken + open + unsent }
  }
  const [creates, polls, calls] = await Promise.all([
    one(requestOf("POST", create, key, { prompt: "A lighthouse", n: 1 })),
    one(requestOf("GET", `${create}/${task}`, key)),
    one(requestOf("POST", "/v1/chat/completions", key, chat))
  ])
  return { creates, polls, calls }
}

const shown = (figures: Figures, calm?: Figures): string =>
  (["creates", "polls", "calls"] as const)
    .map((kind) => {
      const { lost, p99: millis } = figures[kind]
      const ratio = calm === undefined ? "" : ` (${(millis / calm[kind].p99).toFixed(1)})`
      return `${kind} ${millis.toFixed(0)} ms${ratio}${lost > 0 ? `, ${lost} lost` : ""}`
    })
    .join("; ")

const underAttack = async (name: string, target: Target, victim: () => Promise<Figures>) => {
  const attacker = start(here("attacks.ts"), [JSON.stringify({ name, target })])
  prefer(attacker.pid!, 5)
  await pause(2000)
  const figures = await victim()
  const statuses = await new Promise((resolve) => {
    attacker.once("message", resolve)
    attacker.send("statuses")
  })
  attacker.kill("SIGKILL")
  await pause(3000)
  return { figures, statuses: JSON.stringify(statuses) }
}

const main = async (folder: string) => {
  prefer(process.pid, -10)
  const databaseUrl = await serverUrl(folder)
  const startUpstream = async (priority: number) => {
    const port = await freePort()
    const upstream = start(here("upstream.ts"), [], {
      env: { PATH: process.env.PATH, PORT: `${port}` }
    })
    prefer(upstream.pid!, priority)
    return `http://127.0.0.1:${port}/v1`
  }
  const upstream = await startUpstream(-10)
  // Calls of the victim do not wait for it
  const upstreamOfAttacker = await startUpstream(5)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const dataDir = join(folder, "data")
  await mkdir(dataDir, { recursive: true })
  start(builtService(), [], {
    execArgv: startFlags,
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      PORT: `${port}`,
      BASE_URL: origin,
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: upstream,
      MISTRAL_API_KEY: "sk-vendor",
      MISTRAL_BASE_URL: upstreamOfAttacker,
      SIMULATOR_DELAY: "1 hour",
      EGRESS_ALLOW: "127.0.0.1",
      LOG_LEVEL: "Error"
    }
  })
  await reachable(origin)
  const victim = await makeKey(origin, "victim", true)
  const rich = await makeKey(origin, "attacker", true)
  const poor = await makeKey(origin, "poor", false)
  const task = await makeTask(origin, victim)
  const tasks: Array<string> = []
  for (let n = 0; n < 50; n += 1) tasks.push(await makeTask(origin, rich))
  const target = { port, rich, poor, tasks }
  const sample = () => measure(port, victim, task)
  await sample()
  const chosen = Object.keys(attacks).filter(
    (name) => only === undefined || only.some((part) => name.includes(part))
  )
  for (const name of chosen) {
    const calm = await sample()
    console.log(`calm: ${shown(calm)}; load ${loadavg()[0]?.toFixed(1)}`)
    const { figures, statuses } = await underAttack(name, target, sample)
    const worst = Math.max(
      ...(["creates", "polls", "calls"] as const).map((it) => figures[it].p99 / calm[it].p99)
    )
    const verdict = worst <= ratioMax ? "held" : "missed"
    console.log(`${name}: ${verdict}, ${shown(figures, calm)}; the attacker got ${statuses}`)
  }
}

const folder = await mkdtemp(join(tmpdir(), `hostile-${process.pid}-`))
try {
  await main(folder)
} finally {
  for (const child of started) child.kill("SIGKILL")
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
