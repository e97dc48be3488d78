import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises"
import { loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { compiled } from "../../support/compiled.ts"
import { adminToken, masterKey } from "../../support/gateway.ts"
import { Checker } from "./checker.ts"
import type { Breach } from "./checker.ts"
import { Clients, operatorToken } from "./clients.ts"
import { Disk } from "./disk.ts"
import { Load } from "./load.ts"
import type { Rates, User } from "./load.ts"
import { Proxy } from "./network.ts"
import { outsideFaults } from "./outsideFaults.ts"
import { Postgres } from "./postgres.ts"
import { pause, ServiceProcess } from "./processes.ts"
import { processFaults } from "./processFaults.ts"
import { makeRandom } from "./random.ts"
import type { Random } from "./random.ts"
import { Receivers } from "./receivers.ts"
import { Vendors } from "./vendors.ts"
import type { Fault, Takeover, World } from "./world.ts"

export interface Options extends Rates {
  readonly seed: number
  /** How long faults come. The quiet end takes up to `quietSeconds` more. */
  readonly seconds: number
  readonly quietSeconds: number
  readonly taskDeadline: string
  /** Faults that come at the same time at most, and the rest between two of them in seconds. */
  readonly atOnce: number
  readonly restSeconds: readonly [number, number]
  /** Names of faults that do not come. */
  readonly without: ReadonlyArray<string>
  /** Another checkout of the service. */
  readonly oldRelease?: string
  readonly hasStandby: boolean
  /** Where logs are kept; otherwise they go with the temporary folder. */
  readonly logs?: string
}

export interface Done {
  readonly fault: string
  readonly what: string
  readonly atSeconds: number
}

export interface Result {
  readonly options: Options
  readonly began: Date
  readonly done: ReadonlyArray<Done>
  readonly missing: ReadonlyArray<string>
  readonly breaches: ReadonlyArray<Breach>
  readonly checks: number
  readonly statuses: ReadonlyMap<string, number>
  readonly takeovers: ReadonlyArray<Takeover>
  readonly figures: Readonly<Record<string, string | number>>
  readonly taskErrors: ReadonlyMap<string, number>
}

const events = ["task.created", "task.succeeded", "task.failed", "balance.low"]

/** Everything of one run, from an empty store to the quiet end. */
export const runChaos = async (options: Options): Promise<Result> => {
  const began = new Date()
  const load0 = loadavg()[0] ?? 0
  const folder = await mkdtemp(join(tmpdir(), "gateway-chaos-"))
  // Postgres does not run as root
  await chmod(folder, 0o755)
  const logs = options.logs ?? join(folder, "logs")
  await mkdir(logs, { recursive: true })
  const closing: Array<() => Promise<unknown>> = [
    () => rm(folder, { recursive: true, force: true, maxRetries: 3 })
  ]
  try {
    const parts = await assemble(options, folder, logs, closing)
    const { checker, clients, load, world } = parts
    const done: Array<Done> = []
    const end = Date.now() + options.seconds * 1000
    load.start(options)
    const note = (fault: string, what: string, at: number) =>
      done.push({ fault, what, atSeconds: Math.round((at - began.getTime()) / 1000) })
    const faults = parts.faults
    await Promise.all([
      ...Array.from({ length: options.atOnce }, (_, n) =>
        bringFaults(world, faults, makeRandom(options.seed, `faults ${n}`), options, end, note)
      ),
      lookNowAndThen(checker, end)
    ])
    parts.stop()
    await heal(world)
    await load.stop()
    const quietAfter = await untilQuiet(parts, options.quietSeconds)
    await checker.lookAtRest()
    for (const process of world.processes) process.sample()
    return {
      options,
      began,
      done,
      missing: parts.missing,
      breaches: checker.breaches,
      checks: checker.rounds,
      statuses: clients.statuses,
      takeovers: world.takeovers,
      taskErrors: await taskErrors(world.postgres),
      figures: {
        "seconds of faults": options.seconds,
        "seconds to the quiet end": quietAfter ?? `not within ${options.quietSeconds}`,
        ...(await figuresOf(parts)),
        "load of the machine, before and after": `${load0.toFixed(1)}, ${(loadavg()[0] ?? 0).toFixed(1)}`
      }
    }
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {})
  }
}

type Parts = Awaited<ReturnType<typeof assemble>>

const assemble = async (
  options: Options,
  folder: string,
  logs: string,
  closing: Array<() => Promise<unknown>>
) => {
  const { seed } = options
  const missing: Array<string> = []
  await compiled()
  const postgres = await Postgres.start(folder)
  closing.push(() => postgres.stop())
  const vendors = await Vendors.start(makeRandom(seed, "vendors"))
  closing.push(() => vendors.close())
  const receivers = await Receivers.start(folder, makeRandom(seed, "receivers"))
  closing.push(() => receivers.close())
  const disk = await Disk.mount(join(folder, "media"))
  if (disk === undefined) missing.push("full and read-only disk: nothing may be mounted here")
  closing.push(async () => disk?.unmount())
  const random = makeRandom(seed, "world")

  const databaseProxies = new Map<string, Proxy>()
  const processes: Array<ServiceProcess> = []
  const common = {
    ...(await vendors.env(folder)),
    ADMIN_TOKEN: adminToken,
    MASTER_KEY: masterKey,
    HOST: "127.0.0.1",
    EGRESS_ALLOW: "127.0.0.1,::1,localhost",
    NODE_EXTRA_CA_CERTS: receivers.caFile,
    MANAGE_RATE_LIMIT_PER_MINUTE: "0",
    DB_POOL: "6",
    DATA_DIR: join(folder, "data"),
    ARTIFACT_STORE: disk?.folder ?? join(folder, "media"),
    TASK_DEADLINE: options.taskDeadline,
    SHUTDOWN_DELAY: "500 millis",
    SHUTDOWN_GRACE: "15 seconds",
    LOG_FORMAT: "json",
    LOG_LEVEL: "Info"
  }
  for (const name of ["a", "b", "c"]) {
    const proxy = await Proxy.start(postgres.port)
    closing.push(() => proxy.close())
    databaseProxies.set(name, proxy)
    const jump = Math.round(random.between(2000, 15_000)) * random.pick([1, -1])
    const jumps = Array.from({ length: 400 }, (_, n) => (n % 2 === 0 ? jump : -jump))
    const process = await ServiceProcess.make({
      name,
      folder: logs,
      env: {
        ...common,
        PUBLIC_URL: "http://127.0.0.1:1",
        DATABASE_URL: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`,
        CLOCK_JUMPS: jumps.join(",")
      }
    })
    closing.push(() => process.end("SIGKILL"))
    processes.push(process)
  }
  if (options.oldRelease !== undefined) {
    // The schema begins as the old release has it, and is migrated beside its processes
    for (const process of processes) process.root = options.oldRelease
  } else missing.push("old release beside new ones: no checkout of one was given")
  await processes[0]!.start()
  await Promise.all(processes.slice(1).map((process) => process.start()))
  vendors.callbackTargets = processes.map(({ url }) => url)

  const clients = new Clients(processes, makeRandom(seed, "clients"))
  const users = await makeUsers(clients, receivers)
  const hooks = users.flatMap(({ hooks }) => hooks)
  const load = new Load(seed, clients, users, makeRandom(seed, "load"))
  if (options.hasStandby) await postgres.addStandby()
  else missing.push("failover: no standby was asked for")
  if (options.oldRelease !== undefined) {
    for (const process of processes) {
      process.root = projectRoot
      await process.end("SIGTERM")
      await process.start()
    }
  }
  const state = { isOver: false }
  const world: World = {
    random,
    postgres,
    processes,
    databaseProxies,
    vendors,
    receivers,
    hooks,
    disk,
    oldRelease: options.oldRelease,
    inHand: new Set(),
    takeovers: [],
    isOver: () => state.isOver
  }
  const { wrong: wrongAnswers } = clients
  const beganAt = Date.now()
  const checker = new Checker({ postgres, load, vendors, receivers, processes, wrongAnswers, beganAt })
  const faults = [...processFaults, ...outsideFaults].filter(({ name }) => !options.without.includes(name))
  return {
    world,
    checker,
    clients,
    load,
    faults,
    missing,
    stop: () => {
      state.isOver = true
    }
  }
}

const projectRoot = new URL("../../../", import.meta.url).pathname

const makeUsers = async (clients: Clients, receivers: Receivers): Promise<ReadonlyArray<User>> => {
  const post = async (path: string, body: unknown, token = operatorToken) => {
    const made = await clients.surely("manage", `/manage/v1${path}`, { token, body })
    if (made === undefined || made.status > 201) throw new Error(`${path}: ${made?.status} ${made?.text}`)
    return made.json
  }
  const users: Array<User> = []
  for (const [name, paid] of [
    ["rich", 1_000_000],
    ["limited", 1_000_000],
    ["poor", 60]
  ] as const) {
    const user = await post("/users", { email: `${name}@example.com` })
    await post(`/users/${user.id}/top-ups`, { amount: String(paid) })
    const scopes = ["inference", "manage"]
    const { key } = await post(`/users/${user.id}/api-keys`, { name, scopes })
    const hooks = [`/${name}/1`, `/${name}/2`]
    for (const hook of hooks) {
      await post("/webhook-endpoints", { url: receivers.url(hook), events }, key)
    }
    if (name !== "limited") {
      users.push({ id: user.id, name, key, hooks, paid })
      continue
    }
    const made = await post("/api-keys", { name: "limited" }, key)
    const limit = 100
    await clients.surely("manage", `/manage/v1/api-keys/${made.id}`, {
      token: key,
      method: "PATCH",
      body: { spend_limit: { amount: String(limit), reset: "never" } }
    })
    users.push({ id: user.id, name, key, hooks, paid, limited: { id: made.id, key: made.key, limit } })
  }
  return users
}

const bringFaults = async (
  world: World,
  faults: ReadonlyArray<Fault>,
  random: Random,
  options: Options,
  end: number,
  note: (fault: string, what: string, at: number) => unknown
): Promise<void> => {
  while (Date.now() < end) {
    await pause(Math.min(random.between(...options.restSeconds) * 1000, end - Date.now()))
    if (Date.now() >= end) return
    const fault = random.weighted(faults)
    const at = Date.now()
    const what = await fault.run(world).catch((cause: unknown) => `went wrong: ${String(cause)}`)
    if (what !== undefined) note(fault.name, what, at)
  }
}

const lookNowAndThen = async (checker: Checker, end: number): Promise<void> => {
  while (Date.now() < end) {
    await pause(Math.min(20_000, Math.max(0, end - Date.now())))
    await checker.look()
  }
}

const heal = async ({ databaseProxies, disk, processes, receivers, vendors }: World): Promise<void> => {
  vendors.heal()
  receivers.moods.clear()
  for (const proxy of databaseProxies.values()) proxy.weather = "passes"
  await disk?.free()
  await Promise.all(processes.map((process) => process.start()))
}

/** Seconds until nothing is under way; `undefined` when it takes too long. */
const untilQuiet = async ({ world }: Parts, quietSeconds: number): Promise<number | undefined> => {
  const began = Date.now()
  while (Date.now() - began < quietSeconds * 1000) {
    const [row] = await world.postgres.query<{ n: number }>(`SELECT (
      (SELECT count(*) FROM runs) + (SELECT count(*) FROM holds) +
      (SELECT count(*) FROM delivery_queue WHERE owner IS NOT NULL OR due_at < clock_timestamp() + interval '5 seconds')
      )::int AS n`)
    if (row?.n === 0) return Math.round((Date.now() - began) / 1000)
    await pause(500)
  }
  return undefined
}

const taskErrors = async (postgres: Postgres): Promise<ReadonlyMap<string, number>> => {
  const rows = await postgres.query<{ code: string; n: number }>(
    `SELECT split_part(model, '-', 1) || ' ' || coalesce(error ->> 'code', status) AS code, count(*)::int AS n FROM tasks GROUP BY 1 ORDER BY 1`
  )
  return new Map(rows.map(({ code, n }) => [code, n]))
}

const figuresOf = async ({ checker, load, world }: Parts) => {
  const { processes, receivers, vendors, postgres } = world
  const [row] = await postgres.query<Record<string, number>>(`SELECT
    (SELECT count(*) FROM tasks)::int AS tasks, (SELECT count(*) FROM calls)::int AS receipts,
    (SELECT count(*) FROM calls WHERE outcome = 'lost')::int AS lost,
    (SELECT count(*) FROM deliveries)::int AS deliveries,
    (SELECT count(*) FROM deliveries WHERE status = 'succeeded')::int AS delivered,
    (SELECT count(*) FROM delivery_queue)::int AS due,
    (SELECT count(*) FROM wallet_entries)::int AS entries`)
  const jobs = [...vendors.sold.values()].reduce((sum, all) => sum + all.length, 0)
  return {
    tasks: row?.["tasks"] ?? 0,
    "jobs bought": jobs,
    "creates refused (balance, limit)": `${load.refusedCreates} (${load.refusedForBalance}, ${load.refusedForLimit})`,
    "creates without an answer": load.unanswered,
    "cancelled by clients": load.cancelled,
    "calls sent": load.calls.length,
    "whole answers to calls": load.calls.filter(({ status }) => status === 200).length,
    "receipts (settled, lost)": `${row?.["receipts"]} (${checker.settledCalls}, ${row?.["lost"]})`,
    "whole answers that were free, of processes that were hit": checker.freeCalls,
    "deliveries (arrived, still due)": `${row?.["deliveries"]} (${row?.["delivered"]}, ${row?.["due"]})`,
    "requests at receivers": receivers.requests,
    "callbacks sent (accepted)": `${vendors.counts.callbacks} (${vendors.counts.callbacksAccepted})`,
    "ledger entries": row?.["entries"] ?? 0,
    "starts of processes": processes.reduce((sum, { starts }) => sum + starts, 0),
    "processor seconds of the service": Math.round(processes.reduce((sum, it) => sum + it.cpuSeconds, 0))
  }
}
