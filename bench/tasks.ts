/**
 * Compares creates with `pgbench` and GET of a task with a bare route, alternating in one run; see README.md.
 * `node bench/tasks.ts [seconds] [rounds]`, options `--actors` (created tasks run too) and
 * `--prof=<folder>` (a CPU profile of the gateway).
 */
import { execFile, spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { load } from "./load.ts"
import type { Measured } from "./load.ts"
import { median } from "./measures.ts"
import { cpuMicros, postgresCpuMicros } from "./processes.ts"

const numbers = process.argv.slice(2).filter((it) => /^\d+$/u.test(it))
const seconds = Number(numbers[0] ?? 5)
const rounds = Number(numbers[1] ?? 5)
const withActors = process.argv.includes("--actors")
const profile = process.argv.find((it) => it.startsWith("--prof="))?.slice(7)
const createRounds = process.argv.includes("--get") ? 0 : rounds
const connections = 16
const users = 16
const token = "operator-token-of-the-bench"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const body = JSON.stringify({ prompt: "A lighthouse at dawn, in the rain, seen from the sea" })

const exec = promisify(execFile)
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

const started: Array<ChildProcess> = []

const start = async (what: "gateway" | "actors" | "bare", databaseUrl: string, data: string) => {
  const port = await freePort()
  const server = fileURLToPath(new URL("tasksServer.ts", import.meta.url))
  const flags =
    profile === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${what}.cpuprofile`]
  const child = spawn(process.execPath, [...flags, server, what], {
    stdio: ["ignore", "inherit", "inherit"],
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      DATA_DIR: data,
      PORT: String(port),
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      SIMULATOR_DELAY: "1 hour",
      LOG_LEVEL: "Error"
    }
  })
  started.push(child)
  for (let i = 0; i < 200; i += 1) {
    const signal = AbortSignal.timeout(1000)
    const response = await fetch(`http://127.0.0.1:${port}/healthz`, { signal }).catch(
      () => undefined
    )
    if (response?.ok === true) return { port, child }
    await pause(50)
  }
  throw new Error(`${what} did not start`)
}

const step = (text: string) => console.error(text)

const manage = async (port: number, place: string, payload: unknown) => {
  const response = await fetch(`http://127.0.0.1:${port}/manage/v1${place}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(payload)
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as { id: string; key: string }
}

const makeUsers = async (port: number) => {
  const made: Array<{ id: string; key: string }> = []
  for (let n = 0; n < users; n += 1) {
    const { id } = await manage(port, "/users", { email: `user-${n}@example.com` })
    await manage(port, `/users/${id}/top-ups`, { amount: "900000000" })
    const { key } = await manage(port, `/users/${id}/api-keys`, { name: "bench" })
    made.push({ id, key })
  }
  return made
}

/** The rows of one accept, as `task_accept_many` writes them, statement by statement. */
const statements = (ids: ReadonlyArray<string>) =>
  `\\set n random(1, ${ids.length})
BEGIN;
SELECT gen_random_uuid() AS task, (ARRAY['${ids.join("','")}'])[:n] AS owner \\gset
INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id, created_at, updated_at)
  VALUES (:task::uuid, :owner::uuid, 'key_00000000000000000000000000000000', 'alibaba', 'text-to-image-max', 'generation', 'images', 'pending',
  '{"seed": 1, "size": "1664*928", "prompt": "A lighthouse at dawn, in the rain, seen from the sea", "prompt_extend": true, "safety_filter": true}', true, 7500000, repeat('a', 32), now(), now());
INSERT INTO runs (task_id, api_key_id, deadline_at) VALUES (:task::uuid, 'key_00000000000000000000000000000000', now());
INSERT INTO events (id, created_at, user_id, type, task_id, body, trace_id)
  VALUES ('evt_' || :task, now(), :owner::uuid, 'task.created', :task::uuid, convert_to(repeat('x', 330), 'UTF8'), repeat('a', 32));
SELECT id FROM webhook_endpoints WHERE user_id = :owner::uuid AND enabled AND deleted_at IS NULL AND 'task.created' = ANY (events);
UPDATE wallets SET held = held + 7500000, entry_count = entry_count + 1
  WHERE user_id = :owner::uuid AND settled - held >= 7500000 RETURNING settled, held, entry_count \\gset
INSERT INTO holds (id, user_id, kind, amount, created_at) VALUES (:task::uuid, :owner::uuid, 'task', 7500000, now());
INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
  VALUES (:owner::uuid, :entry_count, 'hold', 7500000, :settled, :held, 'hold:' || :task, :task::uuid, repeat('a', 32), now());
COMMIT;
`

/** The same rows in one call, as the gateway writes them. */
const functionCall = (ids: ReadonlyArray<string>) =>
  `\\set n random(1, ${ids.length})
SELECT balance FROM task_accept_many(jsonb_build_array(jsonb_build_object('n', 0, 'task', gen_random_uuid(),
  'user_id', (ARRAY['${ids.join("','")}'])[:n], 'api_key', 'key_0', 'vendor', 'alibaba', 'model', 'text-to-image-max', 'action', 'generation', 'kind', 'images',
  'body', '{"seed": 1, "size": "1664*928", "prompt": "A lighthouse at dawn, in the rain, seen from the sea", "prompt_extend": true, "safety_filter": true}'::jsonb,
  'sandbox', true, 'price', 7500000, 'deadline', now(), 'trace', repeat('a', 32), 'now', now(),
  'event', 'evt_' || gen_random_uuid(), 'event_body', convert_to(repeat('x', 330), 'UTF8'), 'running_max', 0)));
`

const pgbench = async (script: string, databaseUrl: string) => {
  const args = ["-n", "-M", "prepared", "-c", String(connections), "-j", "1", "-T", String(seconds)]
  const { stdout } = await exec("pgbench", [...args, "-f", script, databaseUrl])
  return Math.round(Number(/tps = ([\d.]+)/u.exec(stdout)?.[1]))
}

const show = (name: string, values: ReadonlyArray<number>, unit = "/s") =>
  console.log(
    `${name.padEnd(52)} ${String(median(values)).padStart(7)} ${unit}   ${values.join(" ")}`
  )

const post = (key: string) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

const get = (place: string, key: string) =>
  `GET ${place} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`

const only = (expected: string, measured: Measured) => {
  const others = Object.keys(measured.statuses).filter((status) => status !== expected)
  if (others.length > 0) throw new Error(JSON.stringify(measured.statuses))
  return measured.perSecond
}

const main = async (folder: string) => {
  const admin = new URL(await serverUrl(folder))
  await exec("psql", [admin.href, "-c", "CREATE DATABASE bench"])
  const url = new URL(admin)
  url.pathname = "/bench"
  const gateway = await start(withActors ? "actors" : "gateway", url.href, join(folder, "gw"))
  const bare = await start("bare", url.href, join(folder, "bare"))
  step("servers are up")
  const people = await makeUsers(gateway.port)
  const key = (n: number) => people[n % users]!.key
  const scripts = { rows: join(folder, "rows.sql"), call: join(folder, "call.sql") }
  await writeFile(scripts.rows, statements(people.map(({ id }) => id)))
  await writeFile(scripts.call, functionCall(people.map(({ id }) => id)))

  const tasks: Array<{ id: string; key: string }> = []
  const create = (forSeconds: number, onResponse?: (text: string) => void) =>
    load({
      port: gateway.port,
      connections,
      seconds: forSeconds,
      request: (n) => post(key(n)),
      ...(onResponse === undefined ? {} : { onResponse })
    })
  for (let n = 0; n < 256; n += 1) {
    const response = await fetch(`http://127.0.0.1:${gateway.port}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key(n)}`, "content-type": "application/json" },
      body
    })
    const { task_info } = (await response.json()) as { task_info: { id: string } }
    tasks.push({ id: task_info.id, key: key(n) })
  }
  const task = (n: number) => tasks[n % tasks.length]!
  const gateways = (n: number) => get(`${path}/${task(n).id}`, task(n).key)
  const bares = (n: number) => get(`/tasks/${task(n).id}`, task(n).key)

  step("warm-up")
  if (createRounds > 0) await create(2)
  const pgRows: Array<number> = []
  const pgCall: Array<number> = []
  const creates: Array<number> = []
  for (let round = 0; round < createRounds; round += 1) {
    await exec("psql", [url.href, "-c", "VACUUM ANALYZE"])
    pgRows.push(await pgbench(scripts.rows, url.href))
    creates.push(only("202", await create(seconds)))
    pgCall.push(await pgbench(scripts.call, url.href))
  }
  const reads: Array<number> = []
  const bareReads: Array<number> = []
  const reading = (port: number, request: (n: number) => string, forSeconds = seconds) =>
    load({ port, connections, seconds: forSeconds, request })
  await reading(gateway.port, gateways, 2)
  await reading(bare.port, bares, 2)
  const cpu = {
    bare: [] as Array<number>,
    gateway: [] as Array<number>,
    pgBare: [] as Array<number>,
    pgGateway: [] as Array<number>
  }
  const counted = async (who: "bare" | "gateway", pid: number, work: () => Promise<Measured>) => {
    const before = [cpuMicros(pid), postgresCpuMicros(folder)] as const
    const perSecond = only("200", await work())
    const requests = perSecond * seconds
    cpu[who].push(Math.round((10 * (cpuMicros(pid) - before[0])) / requests) / 10)
    const postgres = (postgresCpuMicros(folder) - before[1]) / requests
    cpu[who === "bare" ? "pgBare" : "pgGateway"].push(Math.round(10 * postgres) / 10)
    return perSecond
  }
  for (let round = 0; round < rounds; round += 1) {
    bareReads.push(await counted("bare", bare.child.pid!, () => reading(bare.port, bares)))
    reads.push(await counted("gateway", gateway.child.pid!, () => reading(gateway.port, gateways)))
  }
  show("pgbench, the same rows, statement by statement", pgRows)
  show("pgbench, the same rows, one call", pgCall)
  show(`gateway, create${withActors ? " (and the tasks run)" : ""}`, creates)
  console.log(
    `create / pgbench ${((100 * median(creates)) / median(pgRows)).toFixed(0)} % (goal 40 %)`
  )
  show("bare Effect route, one indexed SELECT", bareReads)
  show("gateway, GET of a task", reads)
  console.log(`GET / bare ${((100 * median(reads)) / median(bareReads)).toFixed(0)} % (goal 60 %)`)
  show("CPU of a request, bare route", cpu.bare, "µs")
  show("CPU of a request, gateway", cpu.gateway, "µs")
  show("CPU of a request, Postgres for the bare route", cpu.pgBare, "µs")
  show("CPU of a request, Postgres for the gateway", cpu.pgGateway, "µs")
}

const folder = await mkdtemp(join(tmpdir(), `gateway-bench-`))
try {
  await main(folder)
} catch (error) {
  console.error(error)
} finally {
  for (const child of started) child.kill("SIGTERM")
  await Promise.all(started.map((child) => new Promise((resolve) => child.once("exit", resolve))))
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
