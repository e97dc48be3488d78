import { Effect, Option, Schedule, Schema } from "effect"
import type { Scope } from "effect"
import { execFileSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import {
  linkSync,
  readFileSync,
  readlinkSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { hostname } from "node:os"
import { join, resolve } from "node:path"
import { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import { errorCode, makeFolder } from "./MakeFolder.ts"

/** Who holds the folder. A pid alone would be taken for alive when it was given out again. */
const Holder = Schema.Struct({
  pid: Schema.Int,
  /** When the process began, in the system's own words; empty where it cannot be learned. */
  started: Schema.String,
  /** The boot and the pid namespace that the pid belongs to. */
  place: Schema.String,
  nonce: Schema.String
})
type Holder = typeof Holder.Type

const decodeHolder = Schema.decodeUnknownOption(Schema.fromJsonString(Holder))

const heartbeatEvery = "2 seconds"
/** A lock from another place (a container) counts as left behind when its heart stands so long. */
const heartbeatMillisMax = 8_000
const watchEvery = "500 millis"

/**
 * Takes `DATA_DIR` for this process until the scope closes. PGlite does not lock its folder, and two
 * processes in it silently lose committed rows. A lock left by a dead process is taken over: by pid
 * and start time on the same machine, by its heartbeat when the pid means nothing here.
 */
export const lockDataDir = Effect.fn("DataDirLock.lock")(function* (
  dataDir: string
): Effect.fn.Return<void, DatabaseUnavailable, Scope.Scope> {
  const lock = join(dataDir, "gateway.lock")
  const own: Holder = {
    pid: process.pid,
    started: processStarted(process.pid) ?? "",
    place: place(),
    nonce: randomUUID()
  }
  yield* attempt(dataDir, () => makeFolder(resolve(dataDir)))
  yield* Effect.acquireRelease(acquire(dataDir, lock, own), () =>
    Effect.sync(() => {
      if (readHolder(lock)?.nonce === own.nonce) tryUnlink(lock)
    })
  )
  const beat = Effect.sync(() => {
    const now = new Date()
    if (readHolder(lock)?.nonce === own.nonce) utimesSync(lock, now, now)
  })
  yield* Effect.forkScoped(Effect.repeat(Effect.ignoreCause(beat), Schedule.spaced(heartbeatEvery)))
})

const acquire = Effect.fnUntraced(function* (dataDir: string, lock: string, own: Holder) {
  const deadline = 2 * heartbeatMillisMax
  let watched = 0
  let heart: number | undefined
  while (watched <= deadline) {
    if (yield* attempt(dataDir, () => create(lock, own))) return
    const text = readText(lock)
    if (text === undefined) continue
    const holder = Option.getOrUndefined(decodeHolder(text))
    const state = holder === undefined ? "unknown" : judge(holder, own)
    if (holder !== undefined && state === "alive") return yield* inUse(dataDir, holder)
    const beat = heartbeat(lock)
    if (state === "dead" || (heart === beat && watched >= heartbeatMillisMax)) {
      if (yield* attempt(dataDir, () => removeStale(lock, text, own))) continue
    } else if (holder !== undefined && heart !== undefined && heart !== beat) {
      return yield* inUse(dataDir, holder)
    }
    heart = beat
    yield* Effect.sleep(watchEvery)
    watched += 500
  }
  return yield* unusable(dataDir, "its lock changes hands all the time")
})

const attempt = <A>(dataDir: string, body: () => A) =>
  Effect.try({
    try: body,
    catch: (cause) => unusable(dataDir, cause instanceof Error ? cause.message : "unknown fault")
  })

const unusable = (dataDir: string, fault: string) =>
  new DatabaseUnavailable({
    variable: "DATA_DIR",
    fault: `the folder ${resolve(dataDir)} cannot be locked (${fault})`,
    remedy: "Make it a folder that this user may write to"
  })

const inUse = (dataDir: string, holder: Holder) =>
  new DatabaseUnavailable({
    variable: "DATA_DIR",
    fault: `the folder ${resolve(dataDir)} is in use by the process ${holder.pid}`,
    remedy: "Stop that process, or give this one a folder of its own, or set DATABASE_URL"
  })

/** True if the lock is ours. The link makes the file appear whole or not at all. */
const create = (lock: string, own: Holder): boolean => {
  const draft = `${lock}.${own.nonce}`
  writeFileSync(draft, JSON.stringify(own), { mode: 0o600 })
  try {
    linkSync(draft, lock)
    return true
  } catch (cause) {
    if (errorCode(cause) === "EEXIST") return false
    throw cause
  } finally {
    tryUnlink(draft)
  }
}

/** Only who makes the file `.stale` may remove the lock, so none removes its successor. */
const removeStale = (lock: string, text: string, own: Holder): boolean => {
  const right = `${lock}.stale`
  if (!create(right, own)) {
    const other = Option.getOrUndefined(decodeHolder(readText(right) ?? ""))
    if (other === undefined || judge(other, own) === "dead") tryUnlink(right)
    return false
  }
  if (readText(lock) === text) tryUnlink(lock)
  tryUnlink(right)
  return true
}

const judge = (holder: Holder, own: Holder): "alive" | "dead" | "unknown" => {
  if (holder.place !== own.place) return "unknown"
  const started = processStarted(holder.pid)
  if (started === undefined) return "dead"
  return started === "" || holder.started === "" || started === holder.started ? "alive" : "dead"
}

const readText = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return undefined
  }
}

const readHolder = (lock: string): Holder | undefined =>
  Option.getOrUndefined(decodeHolder(readText(lock) ?? ""))

const heartbeat = (lock: string): number => statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? 0

const tryUnlink = (file: string) => {
  try {
    unlinkSync(file)
  } catch {
    // It is gone already.
  }
}

/** `undefined` if there is no such process, empty if there is but its start is not known. */
const processStarted = (pid: number): string | undefined => {
  if (process.platform === "linux") {
    const stat = readText(`/proc/${pid}/stat`)
    // Behind the name, which may contain anything: the state is field 3, the start field 22.
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields === undefined || fields[0] === "Z" ? undefined : (fields[19] ?? "")
  }
  try {
    process.kill(pid, 0)
  } catch (cause) {
    if (errorCode(cause) !== "EPERM") return undefined
  }
  if (process.platform === "win32") return ""
  try {
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim()
  } catch {
    return ""
  }
}

const place = (): string => {
  if (process.platform !== "linux") return hostname()
  const boot = readText("/proc/sys/kernel/random/boot_id")?.trim() ?? hostname()
  try {
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`
  } catch {
    return `${boot} ${hostname()}`
  }
}
