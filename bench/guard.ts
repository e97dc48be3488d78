/**
 * Compares six figures of this working tree with another commit, alternating in one run of five minutes; see README.md.
 *
 *   node bench/guard.ts [commit]        default: HEAD, so that uncommitted changes are compared with it
 */
import { execFileSync, fork, spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "pg"
import { Agent } from "undici"
import { makeAuthority } from "../test/support/certificates.ts"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { jobCatalog } from "./jobCatalog.ts"
import { load } from "./load.ts"
import { quantile } from "./measures.ts"
import { cpuMicros } from "./processes.ts"
import { builtService, startFlagsOf } from "./startFlags.ts"

const commit = process.argv[2] ?? "HEAD"
const root = fileURLToPath(new URL("..", import.meta.url))
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const rounds = 8
const seconds = 2
const usersCount = 16
const token = "operator-token-of-the-bench"
/** Both gateways share one core, because only one works at a time; load, upstream and Postgres have the other. */
const gatewayCore = "1"
const loadCore = "0"

const folder = mkdtempSync(join(tmpdir(), "gateway-guard-"))
// Postgres runs as its own user
chmodSync(folder, 0o755)
const children: Array<ChildProcess> = []
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))
const agent = new Agent({ connections: 256, headersTimeout: 0, bodyTimeout: 0 })

/** A program of this folder that reports its port and answers by IPC. */
const helper = async (name: string, word = "") => {
  const child = fork(here(name), word === "" ? [] : [word], { execArgv: [] })
  children.push(child)
  const answer = () =>
    new Promise<Told>((resolve) => child.once("message", (it) => resolve(it as Told)))
  const { port } = await answer()
  const ask = (what: string) => {
    const told = answer()
    child.send(what)
    return told
  }
  return { port, ask }
}
type Helper = Awaited<ReturnType<typeof helper>>

interface Told {
  readonly port: number
  readonly polls: number
  readonly arrivals: ReadonlyArray<readonly [string, number]>
}

/** A gateway under measurement. */
interface Side {
  readonly name: string
  readonly origin: string
  readonly pid: number
  readonly keys: ReadonlyArray<string>
  /** The keys of users whose endpoint receives `task.created`. */
  readonly hookedKeys: ReadonlyArray<string>
  readonly vendor: Helper
  readonly receiver: Helper
}

interface Shared {
  readonly databases: URL
  readonly ca: string
  readonly certificate: string
  readonly upstreamPort: number
  /** Accepts connections and never responds, so that submits only wait. */
  readonly silentPort: number
}

/** `Prefer: wait` is used to read tasks; some of those created never end. */
const send = async (
  origin: string,
  path: string,
  key: string,
  body?: unknown,
  prefer = "wait=60"
) => {
  const response = await agent.request({
    origin,
    path,
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, prefer },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${path}: ${response.statusCode} ${text}`)
  return text
}

const create = (origin: string, path: string, key: string, body: object) =>
  send(origin, path, key, body, "respond-async")

const startSide = async (name: string, tree: string, shared: Shared): Promise<Side> => {
  const database = `side_${name.replaceAll(/\W/gu, "_")}`
  const client = new Client(shared.databases.href)
  await client.connect()
  await client.query(`CREATE DATABASE ${database}`)
  await client.end()
  const url = new URL(shared.databases)
  url.pathname = `/${database}`
  const vendor = await helper("jobVendor.ts")
  const receiver = await helper("receiver.ts", shared.certificate)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const files = { catalog: join(folder, "catalog.json"), ca: join(folder, "ca.pem") }
  writeFileSync(files.catalog, JSON.stringify(jobCatalog))
  writeFileSync(files.ca, shared.ca)
  const node = [process.execPath, ...startFlagsOf(tree)]
  const words = ["-c", gatewayCore, ...node, builtService(tree)]
  const child = spawn("taskset", words, {
    cwd: tree,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: url.href,
      DATA_DIR: join(folder, database),
      PORT: `${port}`,
      BASE_URL: origin,
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      MANAGE_RATE_LIMIT_PER_MINUTE: "0",
      EGRESS_ALLOW: "127.0.0.1",
      NODE_EXTRA_CA_CERTS: files.ca,
      CATALOG_FILE: files.catalog,
      FAL_API_KEY: "a:b;polls=100000",
      FAL_BASE_URL: `http://127.0.0.1:${vendor.port}`,
      DASHSCOPE_API_KEY: "sk-vendor;concurrent=1",
      DASHSCOPE_BASE_URL: `http://127.0.0.1:${shared.silentPort}/api/v1`,
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `http://127.0.0.1:${shared.upstreamPort}/v1`,
      LOG_LEVEL: "Error"
    }
  })
  children.push(child)
  for (let tries = 0; tries < 600; tries += 1) {
    const isReady = await fetch(`${origin}/readyz`).then(
      ({ ok }) => ok,
      () => false
    )
    if (isReady) break
    if (child.exitCode !== null) throw new Error(`${name} did not start`)
    await pause(100)
  }
  const keyOf = async (n: number, isHooked: boolean) => {
    const user = await post(origin, "/users", token, { email: `${n}-${isHooked}@example.com` })
    await post(origin, `/users/${user.id}/top-ups`, token, { amount: "100000000" })
    const scopes = ["inference", "manage"]
    const { key } = await post(origin, `/users/${user.id}/api-keys`, token, { name: "x", scopes })
    const hook = `https://127.0.0.1:${receiver.port}/hook`
    if (isHooked) {
      await post(origin, "/webhook-endpoints", key, { url: hook, events: ["task.created"] })
    }
    return key
  }
  const keysOf = (isHooked: boolean) =>
    Promise.all(Array.from({ length: usersCount }, (_, n) => keyOf(n, isHooked)))
  const keys = await keysOf(false)
  return {
    name,
    origin,
    pid: child.pid!,
    keys,
    hookedKeys: await keysOf(true),
    vendor,
    receiver
  }
}

const post = async (origin: string, path: string, key: string, body: unknown) =>
  JSON.parse(await send(origin, `/manage/v1${path}`, key, body)) as { id: string; key: string }

/** The operations of one turn and their duration in seconds. */
interface Turn {
  readonly operations: number
  readonly seconds: number
}

/** Sends requests over raw sockets, which cost the load little CPU. */
const requests = async (
  { origin, keys }: Side,
  path: string,
  body: string,
  connections: number
): Promise<Turn> => {
  const { port } = new URL(origin)
  const texts = keys.map(
    (key) =>
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
  const { perSecond, statuses } = await load({
    port: Number(port),
    connections,
    seconds,
    request: (n) => texts[n % texts.length]!
  })
  if (Object.keys(statuses).some((it) => !it.startsWith("2"))) {
    throw new Error(`${path}: ${JSON.stringify(statuses)}`)
  }
  return { operations: perSecond * seconds, seconds }
}

/** Does this many units of work with several clients at once. */
const pieces = async (count: number, clients: number, work: (n: number) => Promise<unknown>) => {
  const began = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let n = client; n < count; n += clients) await work(n)
    })
  )
  return { operations: count, seconds: (performance.now() - began) / 1000 }
}

const accepting = "/vendors/alibaba/v1/text-to-image-max/generation"
const whole = "/vendors/fal/v1/bench/generation"
const chat = (stream: boolean) =>
  JSON.stringify({
    model: "gpt-4o",
    stream,
    // A stream without a limit holds slices of its output
    ...(stream ? {} : { max_tokens: 100 }),
    messages: [{ role: "user", content: "Tell me something in forty words, if you please." }]
  })

/** Each returns when all of its work has been done, so that its CPU time belongs to its turn. */
const figures: Readonly<Record<string, (side: Side) => Promise<Turn>>> = {
  accepts: (side) => requests(side, accepting, JSON.stringify({ prompt: "x" }), 16),
  "small calls": (side) => requests(side, "/v1/chat/completions", chat(false), 32),
  streams: ({ keys, origin }) =>
    pieces(400, 8, (n) =>
      send(origin, "/v1/chat/completions", keys[n % keys.length]!, JSON.parse(chat(true)))
    ),
  "whole tasks": async ({ keys, origin }) => {
    const places: Array<string> = []
    const began = performance.now()
    await pieces(320, 16, async (n) => {
      const text = await create(origin, whole, keys[n % keys.length]!, { prompt: "x", n: 1 })
      places[n] = `${whole}/${JSON.parse(text).task_info.id}`
    })
    // They end at their first poll, 2.5 seconds after the submit
    const { operations } = await pieces(places.length, 64, (n) =>
      send(origin, places[n]!, keys[n % keys.length]!)
    )
    return { operations, seconds: (performance.now() - began) / 1000 }
  },
  webhooks: async ({ hookedKeys, origin, receiver }) => {
    const began = performance.now()
    const { operations } = await pieces(480, 16, (n) =>
      create(origin, accepting, hookedKeys[n % hookedKeys.length]!, { prompt: "x" })
    )
    for (let arrived = 0; arrived < operations;) {
      await pause(20)
      arrived += (await receiver.ask("arrivals")).arrivals.length
    }
    return { operations, seconds: (performance.now() - began) / 1000 }
  }
}

const quartiles = (values: ReadonlyArray<number>) =>
  `${quantile(values, 0.5).toFixed(3)} (${quantile(values, 0.25).toFixed(3)} to ${quantile(values, 0.75).toFixed(3)})`

interface Measured {
  readonly micros: number
  readonly perSecond: number
}

const measure = async (side: Side, work: (side: Side) => Promise<Turn>): Promise<Measured> => {
  const before = cpuMicros(side.pid)
  const turn = await work(side)
  return {
    micros: (cpuMicros(side.pid) - before) / turn.operations,
    perSecond: turn.operations / turn.seconds
  }
}

const show = (name: string, pairs: ReadonlyArray<readonly [own: Measured, other: Measured]>) => {
  const of = (n: 0 | 1, field: keyof Measured) =>
    quantile(
      pairs.map((it) => it[n][field]),
      0.5
    )
  const ratios = (field: keyof Measured) => quartiles(pairs.map(([a, b]) => a[field] / b[field]))
  console.log(
    `${name.padEnd(12)} CPU ${ratios("micros")}, ${of(0, "micros").toFixed(0)} against ${of(1, "micros").toFixed(0)} µs; rate ${ratios("perSecond")}, ${of(0, "perSecond").toFixed(0)} against ${of(1, "perSecond").toFixed(0)}/s`
  )
}

/** Both gateways poll at the same time, as long as jobs wait at their vendors. */
const measurePolls = async (own: Side, other: Side) => {
  const sides = [own, other] as const
  // Started together, because old jobs are polled at longer intervals
  await Promise.all(
    sides.map(({ keys, origin }) =>
      pieces(1500, 8, (n) =>
        create(origin, whole, keys[n % keys.length]!, { prompt: "wait", n: 1 })
      )
    )
  )
  await pause(4000)
  const pairs: Array<readonly [Measured, Measured]> = []
  for (let round = 0; round < rounds; round += 1) {
    const window = async (side: Side): Promise<Measured> => {
      await side.vendor.ask("figures")
      const before = cpuMicros(side.pid)
      await pause(4000)
      const micros = cpuMicros(side.pid) - before
      const { polls } = await side.vendor.ask("figures")
      return { micros: micros / polls, perSecond: polls / 4 }
    }
    pairs.push(await Promise.all([window(own), window(other)] as const))
  }
  show("polls", pairs)
}

const main = async () => {
  const tree = join(folder, "other")
  const git = (...words: ReadonlyArray<string>) =>
    execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim()
  const base = git("rev-parse", "--short", commit)
  git("worktree", "add", "--quiet", "--detach", tree, base)
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
  const authority = await makeAuthority()
  const issued = await authority.issue()
  const upstreamPort = await freePort()
  children.push(
    spawn(process.execPath, [here("upstream.ts")], {
      env: { ...process.env, PORT: `${upstreamPort}` }
    })
  )
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
  const bound = silent.address()
  const shared: Shared = {
    databases: new URL(await serverUrl(folder)),
    ca: authority.ca,
    certificate: JSON.stringify({ ...issued, delayMillis: 0 }),
    upstreamPort,
    silentPort: typeof bound === "object" && bound !== null ? bound.port : 0
  }
  const own = await startSide("this tree", root, shared)
  const other = await startSide("other", tree, shared)
  const pairs = new Map<string, Array<readonly [Measured, Measured]>>()
  // The first round is a warm-up
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(figures)) {
      const isFirst = round % 2 === 0
      const before = isFirst ? await measure(own, work) : undefined
      const theirs = await measure(other, work)
      const ours = before ?? (await measure(own, work))
      if (round >= 0) pairs.set(name, [...(pairs.get(name) ?? []), [ours, theirs]])
    }
  }
  console.log(`This tree to ${base}: median (quartiles) of ${rounds} rounds`)
  for (const [name, measured] of pairs) show(name, measured)
  await measurePolls(own, other)
}

const end = async () => {
  for (const child of children) child.kill("SIGKILL")
  await stopServer(folder)
  execFileSync("git", ["worktree", "remove", "--force", join(folder, "other")], { cwd: root })
  rmSync(folder, { recursive: true, force: true })
}

// Inherited by load, upstream, vendors and Postgres
execFileSync("taskset", ["-p", "-c", loadCore, `${process.pid}`], { stdio: "ignore" })
try {
  await main()
} finally {
  await end()
}
process.exit(0)
