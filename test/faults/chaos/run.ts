import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises"
import { loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { projectFolder } from "../../support/spawnService.ts"
import { assemble } from "./assemble.ts"
import type { Parts } from "./assemble.ts"
import type { Breach } from "./checker.ts"
import type { Options } from "./options.ts"
import type { Postgres } from "./postgres.ts"
import { pause } from "./processes.ts"
import { upgrade } from "./processFaults.ts"
import { makeRandom } from "./random.ts"
import type { Random } from "./random.ts"
import type { Fault, Takeover, World } from "./world.ts"

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

/** A whole run, from an empty store to the quiet end. */
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
    const isOver = () => Date.now() >= end && done.length >= options.faultsMin
    const faults = parts.faults
    await Promise.all([
      ...(options.oldRelease === undefined ? [] : [upgraded(world, note)]),
      ...Array.from({ length: options.atOnce }, (_, n) =>
        bringFaults(world, faults, makeRandom(options.seed, `faults ${n}`), options, isOver, note)
      ),
      checkEvery(20_000, () => checker.check(), end),
      checkEvery(500, () => checker.checkBrief(), end)
    ])
    parts.stop()
    await heal(world)
    await load.stop()
    const quietAfter = await untilQuiet(parts, options.quietSeconds)
    await checker.checkAtRest()
    await lastPasses(world.postgres, options.quietSeconds)
    await checker.checkErased(world.media.folder)
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
    for (const close of closing.toReversed()) await close().catch(() => {})
  }
}

type Note = (fault: string, what: string, at: number) => unknown

const upgraded = async (world: World, note: Note): Promise<void> => {
  await pause(15_000)
  const at = Date.now()
  note("upgrade of an old release", await upgrade(world, projectFolder), at)
}

const bringFaults = async (
  world: World,
  faults: ReadonlyArray<Fault>,
  random: Random,
  options: Options,
  isOver: () => boolean,
  note: Note
): Promise<void> => {
  while (!isOver()) {
    await pause(random.between(...options.restSeconds) * 1000)
    if (isOver()) return
    // Some faults need something that is in use or does not exist
    for (let tries = 0; tries < 20; tries += 1) {
      const fault = random.weighted(faults)
      const at = Date.now()
      const what = await fault.run(world).catch((cause: unknown) => `went wrong: ${String(cause)}`)
      if (what === undefined) continue
      note(fault.name, what, at)
      break
    }
  }
}

const checkEvery = async (
  millis: number,
  check: () => Promise<void>,
  end: number
): Promise<void> => {
  while (Date.now() < end) {
    await pause(Math.min(millis, Math.max(0, end - Date.now())))
    await check()
  }
}

const heal = async ({
  databaseProxies,
  media,
  processes,
  receivers,
  vendors
}: World): Promise<void> => {
  vendors.heal()
  receivers.moods.clear()
  for (const proxy of databaseProxies.values()) proxy.weather = "passes"
  await media.disk?.free()
  if (media.proxy !== undefined) media.proxy.weather = "passes"
  await Promise.all(processes.map((process) => process.start()))
}

/** The seconds until nothing is running; `undefined` if it takes too long. */
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

/**
 * Moves the deletions back by 11 minutes, because the last pass of an erasure is due 10 minutes after the deletion, and
 * waits for the passes.
 */
const lastPasses = async (postgres: Postgres, quietSeconds: number): Promise<void> => {
  await postgres.query(
    `UPDATE users SET deleted_at = deleted_at - interval '11 minutes' WHERE erasure_due_at IS NOT NULL`
  )
  const began = Date.now()
  while (Date.now() - began < quietSeconds * 1000) {
    // Repeated, because a pass that began before the deletions were moved makes the next one due after 10 minutes
    await postgres.query(
      `UPDATE users SET erasure_due_at = clock_timestamp()
       WHERE erasure_due_at > clock_timestamp() + interval '1 minute'`
    )
    const [row] = await postgres.query<{ n: number }>(
      "SELECT count(erasure_due_at)::int AS n FROM users"
    )
    if (row?.n === 0) return
    await pause(500)
  }
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
    "changes of keys": Object.entries(load.changes)
      .map(([what, n]) => `${n} ${what}`)
      .join(", "),
    "users deleted": load.deleted.length,
    "ledger entries": row?.["entries"] ?? 0,
    "starts of processes": processes.reduce((sum, { starts }) => sum + starts, 0),
    "processor seconds of the service": Math.round(
      processes.reduce((sum, it) => sum + it.cpuSeconds, 0)
    )
  }
}
