import {
  ByteSize,
  Context,
  DateTime,
  Effect,
  FileSystem,
  Layer,
  Option,
  Path,
  Schema,
  Stream
} from "effect"
import type { PlatformError } from "effect"
import { randomUUID } from "node:crypto"
import { unlinkSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Batcher } from "../db/Batcher.ts"
import { makeFolder } from "../db/MakeFolder.ts"
import { errorCode } from "../domain/ErrorCode.ts"
import type { ArtifactId, FileId } from "../domain/Ids.ts"
import { StoreUnavailable } from "../domain/Problem.ts"

/**
 * `ARTIFACT_STORE` cannot be used. One line that includes the remedy. docs/reference/configuration.md#artifact-store
 */
export class ArtifactStoreUnusable extends Schema.TaggedError<ArtifactStoreUnusable>()(
  "ArtifactStoreUnusable",
  { message: Schema.String }
) {}

/**
 * The store refuses to remove this medium because of a bucket lock or a missing permission. It still responds and may
 * remove others.
 */
export class RemovalRefused extends Schema.TaggedError<RemovalRefused>()("RemovalRefused", {
  cause: Schema.Defect()
}) {}

/** A part of a medium: bytes from `start` to `end`, inclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** A medium, or a user's file, which is stored separately because it is kept longer. */
export type BlobId = ArtifactId | FileId

/** The bytes of stored media and files. */
export class ArtifactBlobs extends Context.Service<
  ArtifactBlobs,
  {
    /**
     * Writes the chunks as they arrive and returns the result of `record`, which runs once all are stored and before
     * they can be read. If the process dies, the medium is either complete or absent. After `put`, a power cut does not
     * lose it. A second `put` with the same id replaces it.
     */
    readonly put: <E, A, E2>(
      id: BlobId,
      bytes: Stream.Stream<Uint8Array, E>,
      record: Effect.Effect<A, E2>
    ) => Effect.Effect<A, StoreUnavailable | E | E2>
    readonly get: (id: BlobId) => Effect.Effect<Option.Option<Uint8Array>, StoreUnavailable>
    /**
     * The bytes of a range in chunks; `None` if there is no such medium. The range must be within it.
     * The file opens when the stream runs, in the scope of its reader.
     */
    readonly stream: (
      id: BlobId,
      range: ByteRange
    ) => Effect.Effect<Option.Option<Stream.Stream<Uint8Array, StoreUnavailable>>, StoreUnavailable>
    /** Succeeds if there is no such medium. */
    readonly remove: (id: BlobId) => Effect.Effect<void, StoreUnavailable | RemovalRefused>
    /**
     * Removes remains of media, or of files, with older ids. Also removes half-written ones of dead processes, whatever
     * their ids, once nothing has been written to them for an hour.
     */
    readonly removeOlder: (
      than: DateTime.Utc,
      of?: "media" | "files"
    ) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/artifacts/ArtifactBlobs") {
  /** Files in a directory, in subfolders by the time in their ids. ADR 0150. */
  static readonly layerDirectory = (directory: string) =>
    Layer.effect(ArtifactBlobs, Effect.andThen(probe(directory), makeDirectory(directory)))
}

const makeDirectory = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = path.join(directory, "files")
  const folderOf = (id: BlobId) => (id.startsWith("file-") ? files : directory)
  const fileOf = (id: BlobId) => {
    const start = id.startsWith("file-") ? "file-".length : timeStart
    return path.join(folderOf(id), id.slice(start, start + timeDigits), id)
  }
  const syncFolder = yield* makeSyncFolder(fs, directory)
  return ArtifactBlobs.of({
    put: (id, bytes, record) =>
      Effect.withSpan(
        write(fs, fileOf(id), bytes, record, syncFolder(dirname(fileOf(id)))),
        "ArtifactBlobs.put"
      ),
    get: (id) => noneIfMissing(fs.readFile(fileOf(id))),
    stream: (id, { end, start }) =>
      noneIfMissing(
        Effect.as(
          fs.access(fileOf(id)),
          fs
            .stream(fileOf(id), {
              offset: ByteSize.bytes(start),
              bytesToRead: ByteSize.bytes(end - start + 1)
            })
            .pipe(Stream.mapError(failed))
        )
      ),
    remove: (id) =>
      fs.remove(fileOf(id)).pipe(
        Effect.catchIf(isNotFound, () =>
          fs.remove(`${fileOf(id)}${unfinishedExtension}`, { force: true })
        ),
        Effect.mapError((cause) => new RemovalRefused({ cause }))
      ),
    removeOlder: Effect.fnUntraced(function* (than, of = "media") {
      const folder = of === "files" ? files : directory
      const names = yield* noneIfMissing(fs.readDirectory(folder))
      const subfolders = Option.getOrElse(names, () => []).filter((name) => isSubfolder(name))
      const before = DateTime.subtract(yield* DateTime.now, silence)
      const [, failures] = yield* Effect.partition(subfolders, (name) =>
        isOlder(name, than)
          ? fs.remove(path.join(folder, name), { recursive: true, force: true })
          : removeUnfinished(fs, path.join(folder, name), before)
      )
      if (failures[0] !== undefined) return yield* failed(failures[0])
    })
  })
})

/** Writes in this order, so that a file is neither found before its row exists nor lost in a power cut. */
const write = <E, A, E2>(
  fs: FileSystem.FileSystem,
  to: string,
  bytes: Stream.Stream<Uint8Array, E>,
  record: Effect.Effect<A, E2>,
  syncFolder: Effect.Effect<unknown, StoreUnavailable>
): Effect.Effect<A, StoreUnavailable | E | E2> => {
  const unfinished = `${to}${unfinishedExtension}`
  const open = fs.open(unfinished, { flag: "w" })
  // Only the first file of a subfolder creates it
  const opened = Effect.catchIf(open, isNotFound, () =>
    Effect.andThen(fs.makeDirectory(dirname(to), { recursive: true }), open)
  )
  return Effect.gen(function* () {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const file = yield* orFailed(opened)
        yield* Stream.runForEach(bytes, (chunk) => orFailed(file.writeAll(chunk)))
        yield* orFailed(file.sync)
      })
    )
    const recorded = yield* record
    yield* orFailed(fs.rename(unfinished, to))
    yield* syncFolder
    return recorded
  }).pipe(Effect.onError(() => Effect.ignore(fs.remove(unfinished, { force: true }))))
}

/**
 * An id is `art_` and a version 7 UUID. The folder name uses the first digits of its 48-bit time in milliseconds,
 * without the last 20 bits.
 */
const timeStart = "art_".length
const timeDigits = 7
/** One subfolder spans 17.5 minutes. */
const folderMillis = 2 ** 20

const isSubfolder = (name: string): boolean => /^[\da-f]{7}$/u.test(name)

const isOlder = (subfolder: string, than: DateTime.Utc): boolean =>
  (Number.parseInt(subfolder, 16) + 1) * folderMillis <= DateTime.toEpochMillis(than)

/** An upload receives bytes at least every 30 seconds. */
const silence = { hours: 1 } as const

/** Removes the half-written media of a subfolder to which nothing has been written since then. */
const removeUnfinished = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  subfolder: string,
  before: DateTime.Utc
) {
  const names = yield* fs.readDirectory(subfolder)
  for (const name of names.filter((it) => it.endsWith(unfinishedExtension))) {
    const file = join(subfolder, name)
    // Its process may finish it in the meantime
    const written = yield* Effect.catchIf(
      Effect.map(fs.stat(file), ({ mtime }) => mtime),
      isNotFound,
      () => Effect.succeedNone
    )
    if (Option.exists(written, (at) => at.getTime() < DateTime.toEpochMillis(before))) {
      yield* fs.remove(file, { force: true })
    }
  }
})

/** Makes the entries of a folder durable. Files that are renamed while an fsync runs share the next one. */
const makeSyncFolder = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, directory: string) {
  let isWarned = false
  const warn = (error: PlatformError.PlatformError) =>
    Effect.suspend(() => {
      if (isWarned) return Effect.void
      isWarned = true
      return Effect.logWarning(
        "ARTIFACT_STORE: its file system cannot sync folders, so a power cut may lose the newest media",
        error
      )
    })
  const sync = (folder: string) =>
    Effect.flatMap(fs.open(folder, { flag: "r" }), (opened) => opened.sync).pipe(
      Effect.scoped,
      Effect.catchIf(isFolderSyncUnknown, warn)
    )
  // The latest subfolder whose own entry in the directory is durable
  let durable = ""
  const { call } = yield* Batcher.make({
    itemsMax: Number.POSITIVE_INFINITY,
    runsMax: 1,
    run: (folders: ReadonlyArray<string>) =>
      Effect.forEach(new Set(folders), (folder) =>
        Effect.andThen(
          sync(folder),
          Effect.suspend(() => {
            if (folder === durable) return Effect.void
            const parent = dirname(folder)
            return parent === directory
              ? sync(directory)
              : Effect.andThen(sync(parent), sync(directory))
          })
        ).pipe(Effect.andThen(Effect.sync(() => (durable = folder))))
      ).pipe(Effect.as(folders), orFailed)
  })
  return call
})

/** The error of the system, which says why: the message of a `PlatformError` names only the operation. */
const failed = (error: PlatformError.PlatformError) =>
  new StoreUnavailable({ cause: error.cause ?? error })

const orFailed = <A, R>(self: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.mapError(self, failed)

/** Writes and removes a file, so that startup fails if the folder is unusable. */
const probe = (directory: string) =>
  Effect.try({
    try: () => {
      makeFolder(resolve(directory))
      const file = join(directory, `.probe-${randomUUID()}`)
      writeFileSync(file, "")
      unlinkSync(file)
    },
    catch: (cause) =>
      new ArtifactStoreUnusable({
        message: `ARTIFACT_STORE: the folder ${resolve(directory)} cannot be written to (${cause instanceof Error ? cause.message : "unknown fault"}); make it a folder with free space that this user may write to, or set s3://bucket/prefix`
      })
  })

/** Whether the file system does not support fsync of folders: network shares, Windows. */
const isFolderSyncUnknown = ({ reason: { cause } }: PlatformError.PlatformError): boolean =>
  /^(?:EINVAL|ENOTSUP|EOPNOTSUPP|ENOSYS|EBADF|EISDIR|EPERM|EACCES)$/u.test(errorCode(cause) ?? "")

const isNotFound = (error: PlatformError.PlatformError): boolean => error.reason._tag === "NotFound"

const noneIfMissing = <A>(self: Effect.Effect<A, PlatformError.PlatformError>) =>
  self.pipe(
    Effect.asSome,
    Effect.catchIf(isNotFound, () => Effect.succeedNone),
    orFailed
  )

const unfinishedExtension = ".part"
