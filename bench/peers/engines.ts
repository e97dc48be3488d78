/** Whole tasks in job engines: the cost of a task, and the jobs that are paid twice when the process is killed. */
import { fork } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Agent } from "undici"
import { freePort } from "../../test/support/spawnService.ts"
import { jobCatalog } from "../jobCatalog.ts"
import { postgresCpuMicros, residentMiB, treeCpuMicros } from "../processes.ts"
import {
  database,
  folder,
  here,
  makeKey,
  pause,
  query,
  reachable,
  start,
  startGateway,
  stop
} from "../proxies.ts"
import type { Installed, Peer } from "./install.ts"

/** An engine with a database whose table `tasks` contains the state of each task. */
export interface Engine {
  readonly name: string
  readonly version: string
  readonly databaseUrl: string
  readonly start: () => Promise<Running>
  /** How long a dead process's job waits by default before it runs again, and a statement that ages such jobs. */
  readonly recovery: { readonly after: string; readonly age?: string }
}

interface Running {
  readonly child: ChildProcess
  readonly create: (prompt: string) => Promise<void>
}

const clients = 64
const agent = new Agent({ connections: clients })

const post = async (origin: string, path: string, headers: object, body: object) => {
  const response = await agent.request({
    origin,
    path,
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${path}: ${response.statusCode} ${text}`)
}

/** The vendor, in a separate process on the core of the load. */
export const startVendor = async () => {
  const child = fork(here("jobVendor.ts"))
  const told = () =>
    new Promise<{ readonly port: number; readonly jobs: number }>((resolve) =>
      child.once("message", (it) => resolve(it as Awaited<ReturnType<typeof told>>))
    )
  const { port } = await told()
  return {
    url: `http://127.0.0.1:${port}`,
    /** The number of jobs submitted to it so far. */
    jobs: async () => {
      const answer = told()
      child.send("figures")
      return (await answer).jobs
    },
    stop: () => child.kill()
  }
}

export const gatewayEngine = async (vendor: string): Promise<Engine> => {
  const databaseUrl = await database("tasks_gateway")
  const catalog = join(folder, "catalog.json")
  writeFileSync(catalog, JSON.stringify(jobCatalog))
  let headers: object | undefined
  return {
    name: "gateway",
    version: "this commit",
    databaseUrl,
    recovery: { after: "10 s" },
    start: async () => {
      const { child, origin } = await startGateway(databaseUrl, {
        CATALOG_FILE: catalog,
        FAL_API_KEY: "a:b;polls=100000",
        FAL_BASE_URL: vendor
      })
      headers ??= (await makeKey(origin)).headers
      const own = headers
      const path = "/vendors/fal/v1/bench/generation"
      return { child, create: (prompt) => post(origin, path, own, { prompt, n: 1 }) }
    }
  }
}

const recoveries = {
  "graphile-worker": {
    after: "4 h",
    age: `UPDATE graphile_worker._private_jobs SET locked_at = locked_at - interval '5 hours' WHERE locked_at IS NOT NULL`
  },
  "pg-boss": {
    after: "15 min",
    age: `UPDATE pgboss.job SET started_on = started_on - interval '1 hour' WHERE state = 'active'`
  },
  river: {
    after: "1 h",
    age: `UPDATE river_job SET attempted_at = attempted_at - interval '2 hours' WHERE state = 'running'`
  }
}

export const peerEngine = async (
  name: Peer & keyof typeof recoveries,
  { version, words }: Installed,
  vendor: string
): Promise<Engine> => {
  const databaseUrl = await database(`tasks_${name.replace("-", "_")}`)
  await query(
    databaseUrl,
    `CREATE TABLE tasks (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), prompt text NOT NULL,
       status text NOT NULL DEFAULT 'pending', handle jsonb,
       created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now())`
  )
  return {
    name,
    version,
    databaseUrl,
    recovery: recoveries[name],
    start: async () => {
      const port = await freePort()
      const origin = `http://127.0.0.1:${port}`
      const child = start(words, {
        DATABASE_URL: databaseUrl,
        DATA_DIR: join(folder, name),
        PORT: `${port}`,
        VENDOR_URL: vendor
      })
      await reachable(origin, child)
      return { child, create: (prompt) => post(origin, "/tasks", {}, { prompt }) }
    }
  }
}

/** Waits until every task has ended. Returns the number of tasks by status. */
const ended = async ({ databaseUrl }: Engine, seconds: number) => {
  for (const until = performance.now() + seconds * 1000; performance.now() < until;) {
    const text = "SELECT count(*) AS n FROM tasks WHERE status NOT IN ('completed', 'failed')"
    const [open] = await query<{ n: string }>(databaseUrl, text)
    if (open?.n === "0") break
    await pause(100)
  }
  const text = "SELECT status, count(*) AS n FROM tasks GROUP BY status"
  const rows = await query<{ status: string; n: string }>(databaseUrl, text)
  return Object.fromEntries(rows.map(({ n, status }) => [status, Number(n)]))
}

/** One round of tasks from create to picture. The job is done at its first poll, 2.5 s after the submit. */
export const measureTasks = async (engine: Engine, { child, create }: Running, tasks: number) => {
  const [{ at } = { at: "" }] = await query<{ at: string }>(
    engine.databaseUrl,
    "SELECT now()::text AS at"
  )
  const transactions = async () => {
    const text = "SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()"
    const [row] = await query<{ n: string }>(engine.databaseUrl, text)
    return Number(row?.n)
  }
  const used = async () => ({
    cpu: treeCpuMicros(child.pid!),
    postgres: postgresCpuMicros(folder),
    transactions: await transactions(),
    at: performance.now()
  })
  const before = await used()
  const client = async (n: number) => {
    for (let made = n; made < tasks; made += clients) await create("a lighthouse")
  }
  await Promise.all(Array.from({ length: clients }, (_, n) => client(n)))
  await ended(engine, 120)
  const after = await used()
  const [times] = await query<{ p50: number; p99: number }>(
    engine.databaseUrl,
    `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS p50, percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99
     FROM (SELECT extract(epoch FROM updated_at - created_at)::float8 * 1000 AS ms FROM tasks
           WHERE created_at >= '${at}' AND status = 'completed') t`
  )
  return {
    perSecond: (tasks * 1000) / (after.at - before.at),
    cpu: (after.cpu - before.cpu) / tasks,
    postgres: (after.postgres - before.postgres) / tasks,
    transactions: (after.transactions - before.transactions) / tasks,
    p50: times?.p50 ?? Number.NaN,
    p99: times?.p99 ?? Number.NaN,
    memory: residentMiB(child.pid!)
  }
}

/**
 * Kills the process during submits: a task every 25 ms, with each of the vendor's responses 400 ms later. Then restarts
 * it, and ages the dead process's jobs past the engine's own limit.
 */
export const kill = async (engine: Engine, vendor: Awaited<ReturnType<typeof startVendor>>) => {
  const tasks = 40
  await query(engine.databaseUrl, "CREATE TABLE before AS SELECT id FROM tasks")
  const jobs = await vendor.jobs()
  const first = await engine.start()
  for (let n = 0; n < tasks; n += 1) {
    await first.create("slow")
    await pause(25)
  }
  await stop(first.child, "SIGKILL")
  const atKill = (await vendor.jobs()) - jobs
  if (engine.recovery.age !== undefined) await query(engine.databaseUrl, engine.recovery.age)
  const second = await engine.start()
  await ended(engine, 60)
  const failed = await query(
    engine.databaseUrl,
    "SELECT id FROM tasks WHERE status = 'failed' AND id NOT IN (SELECT id FROM before)"
  )
  await stop(second.child)
  return {
    tasks,
    atKill,
    jobs: (await vendor.jobs()) - jobs,
    failed: failed.length
  }
}
