import { join } from "node:path"
import { adminToken, masterKey } from "../../support/gateway.ts"
import { Checker } from "./checker.ts"
import { Clients } from "./clients.ts"
import { Load } from "./load.ts"
import { startBucket, startDisk } from "./media.ts"
import { Proxy } from "./network.ts"
import type { Options } from "./options.ts"
import { outsideFaults } from "./outsideFaults.ts"
import { PgBouncer, roleSettings } from "./pgBouncer.ts"
import { Postgres } from "./postgres.ts"
import { ServiceProcess } from "./processes.ts"
import { processFaults } from "./processFaults.ts"
import { makeRandom } from "./random.ts"
import { Receivers } from "./receivers.ts"
import { makeUser } from "./users.ts"
import type { User } from "./users.ts"
import { Vendors } from "./vendors.ts"
import type { World } from "./world.ts"

export type Parts = Awaited<ReturnType<typeof assemble>>

/** Starts everything that a run needs, and adds to `closing` what has to be stopped. */
export const assemble = async (
  options: Options,
  folder: string,
  logs: string,
  closing: Array<() => Promise<unknown>>
) => {
  const { seed } = options
  const missing: Array<string> = []
  const postgres = await Postgres.start(folder)
  closing.push(() => postgres.stop())
  const vendors = await Vendors.start(makeRandom(seed, "vendors"))
  closing.push(() => vendors.close())
  const receivers = await Receivers.start(folder, makeRandom(seed, "receivers"))
  closing.push(() => receivers.close())
  const media = await (options.media === "disk" ? startDisk : startBucket)(folder)
  closing.push(media.close)
  if (options.media === "disk" && media.disk === undefined) {
    missing.push("full and read-only disk: nothing may be mounted here")
  }
  const pooler = options.hasPooler
    ? await PgBouncer.start(join(folder, "pgbouncer"), postgres.port)
    : undefined
  if (options.hasPooler && pooler === undefined) missing.push("PgBouncer: it is not installed")
  closing.push(async () => pooler?.stop())
  if (pooler !== undefined) {
    for (const setting of roleSettings) await postgres.query(`ALTER ROLE postgres SET ${setting}`)
  }
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
    ...media.env,
    TASK_DEADLINE: options.taskDeadline,
    SHUTDOWN_DELAY: "500 millis",
    SHUTDOWN_GRACE: "1 minute",
    LOG_FORMAT: "json",
    LOG_LEVEL: "Info"
  }
  for (const name of ["a", "b", "c"]) {
    const proxy = await Proxy.start(pooler?.port ?? postgres.port)
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
    // The schema starts as that of the old release, and is migrated while its processes run
    for (const process of processes) process.root = options.oldRelease
  } else missing.push("upgrade of an old release: no checkout of one was given")
  await processes[0]!.start()
  await Promise.all(processes.slice(1).map((process) => process.start()))
  vendors.callbackTargets = processes.map(({ url }) => url)

  const clients = new Clients(processes, makeRandom(seed, "clients"))
  const users = await makeUsers(clients, receivers, options.oldRelease !== undefined)
  const hooks = users.flatMap(({ hooks }) => hooks.map(({ path }) => path))
  const load = new Load(seed, clients, receivers, users, makeRandom(seed, "load"))
  if (options.hasStandby) await postgres.addStandby()
  else missing.push("failover: no standby was asked for")
  const state = { isOver: false }
  const world: World = {
    random,
    scale: options.scale,
    postgres,
    processes,
    databaseProxies,
    vendors,
    receivers,
    hooks,
    media,
    pooler,
    inHand: new Set(),
    takeovers: [],
    isOver: () => state.isOver
  }
  const { wrong: wrongAnswers } = clients
  const beganAt = Date.now()
  const checker = new Checker({
    postgres,
    load,
    vendors,
    receivers,
    processes,
    wrongAnswers,
    beganAt,
    oldRelease: options.oldRelease
  })
  const faults = [...processFaults, ...outsideFaults].filter(
    ({ name }) => !options.without.includes(name)
  )
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

const makeUsers = async (
  clients: Clients,
  receivers: Receivers,
  isUpgrade: boolean
): Promise<Array<User>> => {
  const users: Array<User> = []
  for (const [name, paid] of [
    ["rich", 1_000_000],
    ["limited", 1_000_000],
    ["poor", 60]
  ] as const) {
    // The older release may have no limits
    const hasLimited = name === "limited" && !isUpgrade
    users.push(await makeUser(clients, receivers, name, paid, hasLimited, `first ${name}`))
  }
  return users
}
