import { Effect, Predicate } from "effect"
import type { Scope } from "effect"
import { accessSync, constants, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import { makeFolder } from "./MakeFolder.ts"

/**
 * Locks `DATA_DIR` for this process until the scope closes. PGlite does not lock its folder, and two processes in it
 * silently lose committed rows. The lock is that of an empty SQLite database: the kernel releases it however the
 * process ends, and all containers of a machine see it.
 */
export const lockDataDir = Effect.fn("DataDirLock.lock")(function* (
  dataDir: string
): Effect.fn.Return<void, DatabaseUnavailable, Scope.Scope> {
  const folder = resolve(dataDir)
  // Names the holder to a refused process. Only the lock decides
  const pidFile = join(folder, "gateway.pid")
  yield* Effect.acquireRelease(acquire(folder, pidFile), (lock) => Effect.sync(() => lock.close()))
  yield* Effect.acquireRelease(
    attempt(folder, () => writeFileSync(pidFile, `${process.pid}\n`)),
    () => Effect.sync(() => rmSync(pidFile, { force: true }))
  )
})

const acquire = (folder: string, pidFile: string) =>
  Effect.try({
    try: () => {
      makeFolder(folder)
      // SQLite does not report the system's error
      accessSync(`${folder}/.`, constants.W_OK)
      return openLocked(join(folder, "lock.sqlite"))
    },
    catch: (cause) =>
      Predicate.isError(cause) && cause.message === "database is locked"
        ? inUse(folder, holderIn(pidFile))
        : unusable(folder, cause)
  })

/**
 * The file stays empty, because nothing is committed. It is never removed: a process that has already opened it would
 * lock a file that the next process does not find. Nothing else may open it, because closing it drops all locks of this
 * process on the file.
 */
const openLocked = (file: string): DatabaseSync => {
  const lock = new DatabaseSync(file)
  try {
    lock.exec("PRAGMA busy_timeout = 0")
    lock.exec("PRAGMA journal_mode = MEMORY")
    lock.exec("BEGIN IMMEDIATE")
    // A file that this user may only read is opened read-only, and then not locked at all
    lock.exec("PRAGMA user_version = 1")
    return lock
  } catch (cause) {
    lock.close()
    throw cause
  }
}

const attempt = <A>(folder: string, body: () => A) =>
  Effect.try({ try: body, catch: (cause) => unusable(folder, cause) })

const unusable = (folder: string, cause: unknown) =>
  new DatabaseUnavailable({
    variable: "DATA_DIR",
    fault: `the folder ${folder} cannot be locked (${Predicate.isError(cause) ? cause.message : "unknown fault"})`,
    remedy: "Make it a folder with free space that this user may write to"
  })

const inUse = (folder: string, holder: string) =>
  new DatabaseUnavailable({
    variable: "DATA_DIR",
    fault: `the folder ${folder} is in use by ${holder}`,
    remedy: "Stop that process, give this one another folder, or set DATABASE_URL"
  })

const holderIn = (file: string): string => {
  try {
    const pid = /\d+/u.exec(readFileSync(file, "utf8"))
    if (pid !== null) return `the process ${pid[0]}`
  } catch {
    // The holder has not written its id yet
  }
  return "another process"
}
