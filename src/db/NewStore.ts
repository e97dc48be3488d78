import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { Effect, Predicate } from "effect"
import { fork } from "node:child_process"
import { mkdtemp, open, readdir, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import { startParams } from "./PgliteOptions.ts"

/**
 * Creates a store in another folder and renames that when it is complete, so that a killed startup leaves no incomplete
 * store.
 */
export const makeStore = (
  folder: string,
  options: { readonly durable: boolean; readonly template?: Blob | undefined }
): Effect.Effect<void, DatabaseUnavailable> =>
  Effect.gen(function* () {
    const newFolder = yield* attempt(() => makeNewFolder(folder))
    const { template } = options
    yield* template === undefined ? initialize(newFolder) : fill(newFolder, template)
    if (options.durable) yield* syncTree(newFolder)
    yield* attempt(() => rename(newFolder, folder))
    if (options.durable) yield* attempt(() => syncPath(dirname(folder)))
  })

export const unusable = (cause: unknown) =>
  new DatabaseUnavailable({
    variable: "DATA_DIR",
    fault: `the embedded store cannot be opened (${Predicate.isError(cause) ? cause.message : "unknown fault"})`,
    remedy: "Make the folder writable, free space on its disk, or restore it from a backup"
  })

const attempt = <A>(run: () => Promise<A>): Effect.Effect<A, DatabaseUnavailable> =>
  Effect.tryPromise({ try: run, catch: unusable })

/**
 * Creates a folder with a unique name, because after a kill -9 `initialize` may still write to the folder of the
 * previous start.
 */
const makeNewFolder = async (folder: string): Promise<string> => {
  const parent = dirname(folder)
  const prefix = `${basename(folder)}.new`
  const old = (await readdir(parent)).filter((name) => name.startsWith(prefix))
  await Promise.all(old.map((name) => rm(join(parent, name), { recursive: true, force: true })))
  return mkdtemp(join(parent, `${prefix}-`))
}

/** Next to this file and with its extension, because the package contains JavaScript. */
const program = fileURLToPath(
  new URL(`InitializeStore.${import.meta.url.slice(-2)}`, import.meta.url)
)

const initialize = (folder: string): Effect.Effect<void, DatabaseUnavailable> =>
  Effect.callback((resume) => {
    const child = fork(program, [folder], {
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"]
    })
    let errors = ""
    child.stderr?.on("data", (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.once("error", (error) => resume(Effect.fail(unusable(error))))
    child.once("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(unusable(new Error(`initdb: ${errors}`))))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const fill = (folder: string, template: Blob) =>
  attempt(async () => {
    const fs = new NodeFS(folder)
    const options = { fs, startParams: startParams(false), loadDataDir: template }
    const pglite = await PGlite.create(options)
    await pglite.close()
  })

/** Syncs a file, or the names in a folder, to the disk. */
export const syncPath = async (path: string) => {
  const file = await open(path, "r")
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Files synced concurrently: a disk writes many in hardly more time than one. */
const syncsAtOnce = 32

/** Syncs a folder with its contents to the disk. */
export const syncTree = (folder: string): Effect.Effect<void, DatabaseUnavailable> =>
  Effect.flatMap(
    attempt(() => readdir(folder, { recursive: true })),
    (entries) =>
      Effect.forEach(
        [folder, ...entries.map((entry) => join(folder, entry))],
        (path) => attempt(() => syncPath(path)),
        { concurrency: syncsAtOnce, discard: true }
      )
  )
