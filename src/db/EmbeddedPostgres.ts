import { PGlite } from "@electric-sql/pglite"
import type { PGliteOptions } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { Effect, Predicate } from "effect"
import type { Scope } from "effect"
import { closeSync, existsSync, fsyncSync, openSync, readdirSync } from "node:fs"
import { mkdir, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import { lockDataDir } from "./DataDirLock.ts"
import { PgliteSession } from "./PgliteStream.ts"

export interface EmbeddedOptions {
  /** `DATA_DIR`; the store is in its folder `postgres`. `memory` stores nothing. */
  readonly dataDir: string
  /** Whether each commit is followed by fsync; without it a power cut may lose the last commits. */
  readonly durable: boolean
  /** A dump (`dumpDataDir`) that a new store is made from, instead of by `initdb`. */
  readonly template?: Blob
}

/** Opens PGlite until the scope closes; its folder is locked against other processes. */
export const openEmbedded = Effect.fn("Embedded.open")(function* (
  options: EmbeddedOptions
): Effect.fn.Return<PgliteSession, DatabaseUnavailable, Scope.Scope> {
  if (options.dataDir === "memory") {
    return new PgliteSession(
      yield* start({ ...template(options), startParams: startParams(false) })
    )
  }
  yield* lockDataDir(options.dataDir)
  const folder = join(options.dataDir, "postgres")
  if (!existsSync(folder)) yield* initialize(folder, options)
  const fs = options.durable ? new DurableNodeFS(folder) : new NodeFS(folder)
  const pglite = yield* start({ fs, startParams: startParams(options.durable) })
  return new PgliteSession(pglite, () => (fs instanceof DurableNodeFS ? fs.failure : undefined))
})

const template = (options: EmbeddedOptions) =>
  options.template === undefined ? {} : { loadDataDir: options.template }

const start = (options: PGliteOptions) =>
  Effect.acquireRelease(
    Effect.tryPromise({ try: () => PGlite.create(options), catch: unusable }),
    (pglite) => Effect.ignore(Effect.tryPromise(() => pglite.close()))
  )

const unusable = (cause: unknown) =>
  new DatabaseUnavailable({
    variable: "DATA_DIR",
    fault: `the embedded store cannot be opened (${Predicate.isError(cause) ? cause.message : "unknown fault"})`,
    remedy: "Make the folder writable, free space on its disk, or restore it from a backup"
  })

/**
 * PGlite's own parameters, with fsync if durable. Emscripten's `fdatasync` does nothing, so the WAL
 * uses `fsync`. Small buffers save 140 MB of memory, small WAL limits save disk.
 */
export const startParams = (durable: boolean): Array<string> => [
  ...PGlite.defaultStartParams.filter((parameter) => !durable || parameter !== "-F"),
  ...[
    "shared_buffers=16MB",
    "wal_sync_method=fsync",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    // As on a server: `planning` in Database.ts
    "enable_seqscan=off",
    "jit=off"
  ].flatMap((setting) => ["-c", setting])
]

/**
 * A new store is made in another folder and renamed when it is complete, so that a start that is killed
 * leaves no incomplete store.
 */
const initialize = Effect.fnUntraced(function* (folder: string, options: EmbeddedOptions) {
  const newFolder = `${folder}.new`
  yield* Effect.tryPromise({
    try: async () => {
      await rm(newFolder, { recursive: true, force: true })
      await mkdir(newFolder, { recursive: true, mode: 0o700 })
    },
    catch: unusable
  })
  const fs = new NodeFS(newFolder)
  yield* Effect.scoped(
    start({
      fs,
      startParams: startParams(false),
      initDbStartParams: ["--wal-segsize=1"],
      ...template(options)
    })
  )
  yield* Effect.tryPromise({
    try: async () => {
      if (options.durable) syncTree(newFolder)
      await rename(newFolder, folder)
      if (options.durable) syncPath(options.dataDir)
    },
    catch: unusable
  })
})

const syncPath = (path: string) => {
  const descriptor = openSync(path, "r")
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const syncTree = (folder: string) => {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) syncTree(path)
    else syncPath(path)
  }
  syncPath(folder)
}

/**
 * PGlite's `NodeFS` with a real `fsync`, which it lacks. `failure`: fsync has failed, or PGlite has aborted
 * (PANIC), and nothing may be written any more.
 */
class DurableNodeFS extends NodeFS {
  failure: Error | undefined

  override async init(...[pglite, options]: Parameters<NodeFS["init"]>) {
    const { emscriptenOpts } = await super.init(pglite, options)
    const onAbort = (reason: unknown) => {
      this.failure ??= new Error(`The embedded store has stopped: ${String(reason)}`)
    }
    const preRun = [...(emscriptenOpts.preRun ?? []), (module: unknown) => this.#install(module)]
    return { emscriptenOpts: { ...emscriptenOpts, onAbort, preRun } }
  }

  #install(module: unknown) {
    if (
      !Predicate.hasProperty(module, "NODEFS") ||
      !Predicate.hasProperty(module.NODEFS, "stream_ops") ||
      !Predicate.isObject(module.NODEFS.stream_ops)
    ) {
      throw new Error("This version of PGlite has no NODEFS to give an fsync to")
    }
    Object.assign(module.NODEFS.stream_ops, {
      fsync: (stream: { readonly nfd: number }): number => {
        try {
          fsyncSync(stream.nfd)
          return 0
        } catch (cause) {
          this.failure ??= new Error("The disk refuses fsync; commits are not safe", { cause })
          return ioError
        }
      }
    })
  }
}

/** `EIO` of WASI. */
const ioError = 29
