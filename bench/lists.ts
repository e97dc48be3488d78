/**
 * The console's list of tasks on Postgres, for a user with many tasks next to another user with as many. For each filter
 * it measures the first page, and all pages until 50 rows have been found or the list ends.
 *
 *   node bench/lists.ts [tasks] [rounds]
 */
import { fork } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { builtService, startFlags } from "./startFlags.ts"

const count = Number(process.argv[2] ?? 100_000)
const rounds = Number(process.argv[3] ?? 10)
const token = "operator-token-of-the-bench"
const pageRows = 50
/** In seconds. The copies are one second apart, and the last one is from now. */
const first = Math.floor(Date.now() / 1000) - count
const dayOf = (seconds: number) => new Date(seconds * 1000).toISOString()
const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

const folder = await mkdtemp(join(tmpdir(), `gateway-postgres-${process.pid}-`))
let gateway: ChildProcess | undefined

const startGateway = async (databaseUrl: string) => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  gateway = fork(builtService(), [], {
    execArgv: startFlags,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      DATA_DIR: folder,
      HOST: "127.0.0.1",
      PORT: `${port}`,
      BASE_URL: origin,
      ADMIN_TOKEN: token,
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      MANAGE_RATE_LIMIT_PER_MINUTE: "0",
      SIMULATOR_DELAY: "1 millis",
      LOG_LEVEL: "Error"
    }
  })
  const isReady = () =>
    fetch(`${origin}/readyz`).then(
      (it) => it.ok,
      () => false
    )
  while (!(await isReady())) await pause(100)
  return origin
}

const caller = (origin: string) => async (place: string, key: string, body?: unknown) => {
  const response = await fetch(`${origin}${place}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const text = await response.text()
  if (response.status >= 300) throw new Error(`${place} ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Copies of two ended tasks, one second apart: one in a hundred failed, and one in 20,000 has a rare model. */
const copies = (user: string, salt: string) => `
  INSERT INTO tasks SELECT (t).* FROM (
    SELECT jsonb_populate_record(s, jsonb_build_object(
      'id', (lpad(to_hex(${first * 1000} + n::bigint * 1000), 12, '0') || '7'
        || left(md5('${salt}' || n), 3) || '8' || right(md5('${salt}' || n), 15))::uuid,
      'created_at', to_timestamp(${first} + n), 'ended_at', to_timestamp(${first + 3} + n),
      'model', CASE WHEN n % 20000 = 7 THEN 'rare' WHEN n % 2 = 0 THEN s.model ELSE 'other' END,
      'trace_id', md5('trace ${salt}' || n))) AS t
    FROM generate_series(1, ${count}) n
    JOIN tasks s ON s.user_id = '${user}' AND (s.error IS NOT NULL) = (n % 100 = 50)) c`

const filters = {
  "no filter": "",
  "status=completed": "status=completed",
  "status=failed": "status=failed",
  "status=processing (none)": "status=processing",
  "model, every second": "model=other",
  "model, 5 in all": "model=rare",
  "model (none)": "model=nothing",
  "vendor (none)": "vendor=google",
  "min_cost (none)": "min_cost=1000",
  "model and status, 5 in all": "model=rare&status=completed",
  "a tenth of the time": `since=${dayOf(first + count * 0.4)}&until=${dayOf(first + count * 0.5)}`,
  "trace id": "trace",
  "q, nearly all": "q=lighthouse",
  "q (none)": "q=nothing of it",
  "the operator, all users": "operator",
  "the operator, all users, model (none)": "operator&model=nothing"
}

const run = async () => {
  const { href } = new URL(await serverUrl(folder))
  const db = new Client(href)
  await db.connect()
  const origin = await startGateway(href)
  const call = caller(origin)
  const makeUser = async (email: string) => {
    const user = await call("/manage/v1/users", token, { email })
    await call(`/manage/v1/users/${user.id}/top-ups`, token, { amount: "900000" })
    const scopes = ["inference", "manage"]
    const made = await call(`/manage/v1/users/${user.id}/api-keys`, token, {
      name: "bench",
      scopes
    })
    for (const prompt of ["A lighthouse", "[[sim:fail]]"]) await call(path, made.key, { prompt })
    return { id: String(user.id), key: String(made.key) }
  }
  const user = await makeUser("bench@example.com")
  const other = await makeUser("other@example.com")
  const ended = async () => {
    const { rows } = await db.query("SELECT count(*)::int AS n FROM runs")
    return rows[0].n === 0
  }
  while (!(await ended())) await pause(200)
  for (const { id } of [user, other]) await db.query(copies(id, id.slice(-4)))
  await db.query("ANALYZE tasks")
  const { rows: traces } = await db.query(
    `SELECT trace_id FROM tasks WHERE user_id = '${user.id}' ORDER BY id OFFSET ${count / 2} LIMIT 1`
  )

  const page = (query: string, cursor?: string) => {
    const params = new URLSearchParams(query)
    params.set("limit", `${pageRows}`)
    if (cursor !== undefined) params.set("cursor", cursor)
    if (params.has("operator")) {
      params.delete("operator")
      return call(`/manage/v1/operator/tasks?${params}`, token)
    }
    return call(`/manage/v1/tasks?${params}`, user.key)
  }
  for (const [name, given] of Object.entries(filters)) {
    const query = given === "trace" ? `trace_id=${traces[0].trace_id}` : given
    const firsts: Array<number> = []
    const alls: Array<number> = []
    let pages = 0
    let found = 0
    for (let round = 0; round < rounds; round += 1) {
      const began = performance.now()
      let answer = await page(query)
      firsts.push(performance.now() - began)
      pages = 1
      found = answer.data.length
      while (found < pageRows && answer.next_cursor !== null) {
        answer = await page(query, answer.next_cursor)
        pages += 1
        found += answer.data.length
      }
      alls.push(performance.now() - began)
    }
    const show = (millis: ReadonlyArray<number>) => {
      const sorted = millis.toSorted((a, b) => a - b)
      return `${sorted[Math.floor(rounds / 2)]?.toFixed(0)} (${sorted.at(-1)?.toFixed(0)}) ms`
    }
    console.log(`${name}: first ${show(firsts)}; ${found} rows in ${pages} pages ${show(alls)}`)
  }
  await db.end()
}

try {
  await run()
} finally {
  gateway?.kill("SIGKILL")
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
