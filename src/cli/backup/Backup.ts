import { DateTime, Effect, Option } from "effect"
import { existsSync } from "node:fs"
import { cp, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, isAbsolute, join, relative, resolve } from "node:path"
import { AppConfig } from "../../config/Config.ts"
import { cutRestore, markRestore, unmarkRestore } from "../../db/CutRestore.ts"
import * as Database from "../../db/Database.ts"
import { lockDataDir } from "../../db/DataDirLock.ts"
import { makeFolder } from "../../db/MakeFolder.ts"
import * as Migrations from "../../db/Migrations.ts"
import { syncPath, syncTree } from "../../db/NewStore.ts"
import { markStore } from "../../db/StoreMark.ts"
import type { Mark } from "../../db/StoreMark.ts"
import { hasNoStore } from "../../db/StoreTools.ts"
import { failed } from "../terminal/Fault.ts"
import { attempt, readArchive, writeArchive } from "./Archive.ts"

/**
 * Whether a file belongs not to the store but to the process that holds the folder or to the file system, or is a
 * leftover of a killed process.
 */
const isOfProcess = (path: string): boolean =>
  /^(?:gateway\.pid|gateway\.lock|lock\.sqlite.*|\.restore-.*|postgres\.new.*|lost\+found)$/u.test(
    path.split("/")[0] ?? ""
  )

interface Folders {
  readonly dataDir: string
  /** `undefined` for a bucket, which a backup does not include. */
  readonly artifacts: string | undefined
  readonly durable: boolean
}

/** The folders of the embedded store. Other stores have their own backup tools. */
const embedded = Effect.gen(function* () {
  const { artifactStore, dataDir, database } = yield* AppConfig
  if (database._tag === "Postgres") {
    return yield* failed(
      "DATABASE_URL is set: a Postgres server has its own backup tools",
      "Use pg_dump, and copy ARTIFACT_STORE"
    )
  }
  return {
    dataDir: resolve(dataDir),
    artifacts: artifactStore._tag === "Directory" ? resolve(artifactStore.directory) : undefined,
    durable: database.durable
  } satisfies Folders
})

const isBelow = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return way !== "" && !way.startsWith("..") && !isAbsolute(way)
}

const asFault = ({ message }: { readonly message: string }) => failed(message)

const stopFirst = "Stop the service, and start it again after this"

/** Locks the folder, so that no other process writes to it until the scope closes. */
const locked = (dataDir: string) =>
  Effect.mapError(lockDataDir(dataDir), ({ message }) =>
    failed(message, message.includes(" is in use by ") ? stopFirst : undefined)
  )

/** Copies the embedded store with its secrets and media while no process is using it. ADR 0221. */
export const backup = Effect.fnUntraced(
  function* (file: string, version: string) {
    const { artifacts, dataDir } = yield* embedded
    if (hasNoStore(dataDir)) {
      return yield* failed(
        `There is no store in ${dataDir}`,
        "Set DATA_DIR to the folder of the service"
      )
    }
    const target = resolve(file)
    if (existsSync(target)) {
      return yield* failed(`${target} exists; it is not overwritten`, "Name another file")
    }
    const sources = { DATA_DIR: dataDir, ARTIFACT_STORE: artifacts }
    for (const [variable, folder] of Object.entries(sources)) {
      if (folder === undefined || !isBelow(folder, target)) continue
      return yield* failed(
        `${target} is in ${variable}`,
        "Name a file outside of it, best on another disk"
      )
    }
    if (!existsSync(dirname(target))) {
      return yield* failed(
        `The folder ${dirname(target)} does not exist`,
        "Create it, or name a file in another folder"
      )
    }
    yield* locked(dataDir)
    const media = artifacts === undefined || !existsSync(artifacts) ? undefined : artifacts
    const isMedium = (path: string) =>
      media !== undefined && (join(dataDir, path) === media || isBelow(media, join(dataDir, path)))
    const files = yield* writeArchive(
      target,
      [
        { name: "data", folder: dataDir, isLeftOut: (it) => isOfProcess(it) || isMedium(it) },
        ...(media === undefined
          ? []
          : [{ name: "artifacts", folder: media, isLeftOut: isOfProcess }])
      ],
      { format: 1, created_at: DateTime.formatIso(yield* DateTime.now), version }
    )
    return {
      file: target,
      files: files.length,
      bytes: files.reduce((sum, { size }) => sum + size, 0),
      with_media: artifacts !== undefined,
      with_secrets: files.some(({ path }) => path === "data/master-key")
    }
  },
  Effect.scoped,
  Effect.provide(AppConfig.layer),
  Effect.catchTag("ConfigFault", (fault) => Effect.fail(asFault(fault)))
)

const isEmpty = (folder: string) =>
  attempt(
    folder,
    async () => {
      if (!existsSync(folder)) return true
      return (await readdir(folder)).every((name) => isOfProcess(name))
    },
    "Name a folder that this user may read and write to"
  )

/**
 * Migrates the store to this program's version (which fails for the store of a newer program) and marks it as restored
 * (docs/standbys.md). Returns the applied migrations and the number of tasks in doubt.
 */
const markIn = (dataDir: string, durable: boolean) =>
  Effect.gen(function* () {
    const applied = yield* Migrations.migrate()
    const mark = yield* markStore({ by: "gateway restore", now: yield* DateTime.now })
    return { applied, tasksInDoubt: Option.match(mark, markedTasks) }
  }).pipe(
    Effect.provide(Database.layerEmbedded({ dataDir, durable }), { local: true }),
    Effect.mapError(({ message }) =>
      failed(
        `The backup cannot be used: ${message}`,
        "Install the version that made it, or use another backup"
      )
    )
  )

const markedTasks = {
  onNone: () => 0,
  onSome: ({ tasksInDoubt }: Mark) => tasksInDoubt
}

/** Creates a folder for the restore and removes the leftovers of a killed one. */
const makeStaging = (folder: string) =>
  Effect.acquireRelease(
    attempt(folder, async () => {
      makeFolder(folder)
      const left = (await readdir(folder)).filter((name) => name.startsWith(stagingPrefix))
      await Promise.all(left.map((name) => rm(join(folder, name), { recursive: true })))
      return mkdtemp(join(folder, stagingPrefix))
    }),
    (staging) => Effect.promise(() => rm(staging, { recursive: true, force: true }))
  )

const stagingPrefix = ".restore-"

/** Puts the unpacked media on the file system of their destination, because a rename cannot cross file systems. */
const mediaBeside = Effect.fnUntraced(function* (media: string, artifacts: string) {
  const devices = yield* attempt(artifacts, async () => {
    makeFolder(artifacts)
    return [(await stat(media)).dev, (await stat(artifacts)).dev] as const
  })
  if (devices[0] === devices[1]) return media
  const staging = yield* makeStaging(artifacts)
  const copy = join(staging, "artifacts")
  yield* attempt(artifacts, () => cp(media, copy, { recursive: true, preserveTimestamps: true }))
  yield* Effect.mapError(syncTree(staging), asFault)
  return copy
})

const moveInto = async (from: string, to: string) => {
  // The store is moved last: without it, the folder does not count as a store
  const names = (await readdir(from)).toSorted(
    (a, b) => Number(a === "postgres") - Number(b === "postgres")
  )
  for (const name of names) {
    // oxlint-disable-next-line no-await-in-loop
    await rename(join(from, name), join(to, name))
  }
  await syncPath(to)
}

const overwrites = (folder: string) =>
  failed(
    `${folder} is not empty; nothing is overwritten`,
    "Name an empty folder, or move its content away"
  )

/** Restores a backup into empty folders, after every file has been checked and the store could be opened. ADR 0221. */
export const restore = Effect.fnUntraced(
  function* (file: string) {
    const { artifacts, dataDir, durable } = yield* embedded
    const archive = resolve(file)
    const refuseFull = Effect.gen(function* () {
      const cut = cutRestore(dataDir)
      if (cut !== undefined) return yield* failed(cut.fault, cut.remedy)
      for (const folder of [dataDir, ...(artifacts === undefined ? [] : [artifacts])]) {
        if (!(yield* isEmpty(folder))) return yield* overwrites(folder)
      }
    })
    yield* refuseFull
    yield* locked(dataDir)
    // Another restore or a start may have filled the folder in the meantime
    yield* refuseFull
    const staging = yield* makeStaging(dataDir)
    const manifest = yield* readArchive(archive, staging)
    const data = join(staging, "data")
    if (!existsSync(join(data, "postgres", "PG_VERSION")))
      return yield* failed(`${archive} contains no store`)
    const { applied, tasksInDoubt } = yield* Effect.scoped(markIn(data, durable))
    yield* attempt(data, async () => {
      for (const name of (await readdir(data)).filter((it) => isOfProcess(it))) {
        // oxlint-disable-next-line no-await-in-loop
        await rm(join(data, name), { recursive: true, force: true })
      }
    })
    yield* Effect.mapError(syncTree(staging), asFault)
    const unpacked = join(staging, "artifacts")
    const hasMedia = existsSync(unpacked)
    if (hasMedia && artifacts === undefined) {
      return yield* failed(
        "The backup has media, and ARTIFACT_STORE is a bucket",
        "Unset ARTIFACT_STORE for the restore"
      )
    }
    const media =
      hasMedia && artifacts !== undefined
        ? { from: yield* mediaBeside(unpacked, artifacts), to: artifacts }
        : undefined
    const move = attempt(dataDir, async () => {
      await markRestore(dataDir, [dataDir, ...(media === undefined ? [] : [media.to])])
      if (media !== undefined) await moveInto(media.from, media.to)
      await moveInto(data, dataDir)
      await syncPath(dirname(dataDir))
      await unmarkRestore(dataDir)
    })
    // Uninterruptible, because cleaning up would remove files that are not moved yet
    yield* Effect.uninterruptible(move)
    return {
      data_dir: dataDir,
      files: manifest.files.length,
      created_at: manifest.created_at,
      version: manifest.version,
      applied_migrations: [...applied],
      tasks_in_doubt: tasksInDoubt
    }
  },
  Effect.scoped,
  Effect.provide(AppConfig.layer),
  Effect.catchTag("ConfigFault", (fault) => Effect.fail(asFault(fault)))
)
