import { PGlite } from "@electric-sql/pglite"
import type { PGliteOptions } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { Effect, Predicate } from "effect"
import type { Scope } from "effect"
import { existsSync, fsyncSync } from "node:fs"
import { join } from "node:path"
import { cutRestore } from "./CutRestore.ts"
import { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import { lockDataDir } from "./DataDirLock.ts"
import { makeStore, unusable } from "./NewStore.ts"
import { compileOnceOnly, startParams } from "./PgliteOptions.ts"
import { PgliteSession } from "./PgliteStream.ts"

export interface EmbeddedOptions {
  /** `DATA_DIR`; the store is in its folder `postgres`. `memory` stores nothing on disk. */
  readonly dataDir: string
  /** Whether each commit is synced to the disk. If not, a power cut may lose the last commits. */
  readonly durable: boolean
  /** A dump (`dumpDataDir`) from which a new store is created, instead of `initdb`. */
  readonly template?: Blob
}

/** Opens PGlite until the scope closes. Locks its folder against other processes. */
export const openEmbedded = Effect.fn("Embedded.open")(function* (
  options: EmbeddedOptions
): Effect.fn.Return<PgliteSession, DatabaseUnavailable, Scope.Scope> {
  compileOnceOnly()
  if (options.dataDir === "memory") {
    const { template } = options
    const loaded = template === undefined ? {} : { loadDataDir: template }
    return new PgliteSession(yield* start({ ...loaded, startParams: startParams(false) }))
  }
  yield* lockDataDir(options.dataDir)
  const cut = cutRestore(options.dataDir)
  // A new store would get the media and the key of another one
  if (cut !== undefined) return yield* new DatabaseUnavailable({ variable: "DATA_DIR", ...cut })
  const folder = join(options.dataDir, "postgres")
  if (!existsSync(folder)) yield* makeStore(folder, options)
  const fs = options.durable ? new DurableNodeFS(folder) : new NodeFS(folder)
  const pglite = yield* start({ fs, startParams: startParams(options.durable) })
  return new PgliteSession(pglite, () => (fs instanceof DurableNodeFS ? fs.failure : undefined))
})

const start = (options: PGliteOptions) =>
  Effect.acquireRelease(
    Effect.tryPromise({ try: () => PGlite.create(options), catch: unusable }),
    (pglite) => Effect.ignore(Effect.tryPromise(() => pglite.close()))
  )

/**
 * PGlite's `NodeFS` with a real `fsync`, which it lacks. `failure`: fsync has failed or PGlite has aborted (PANIC), so
 * nothing more may be written.
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
      throw new Error("This version of PGlite has no NODEFS to extend with fsync")
    }
    Object.assign(module.NODEFS.stream_ops, {
      fsync: (stream: { readonly nfd: number }): number => {
        try {
          fsyncSync(stream.nfd)
          return 0
        } catch (cause) {
          this.failure ??= new Error("The disk refuses fsync, so commits are not safe", { cause })
          return ioError
        }
      }
    })
  }
}

/** `EIO` of WASI. */
const ioError = 29
