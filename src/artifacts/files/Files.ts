import { Context, DateTime, Effect, Layer, Option, Stream } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { makeFileId } from "../../domain/Ids.ts"
import type { FileId, UserId } from "../../domain/Ids.ts"
import {
  fileDays,
  fileRemainsDays,
  fileSecondsMax,
  filesMax
} from "../../domain/limits/FileLimits.ts"
import { problem, Problem } from "../../domain/Problem.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { ArtifactBlobs } from "../ArtifactBlobs.ts"
import { FileRow, FileStore } from "./FileStore.ts"
import type { FilePage } from "./FileStore.ts"

export type { FileRow } from "./FileStore.ts"

/** The description of an upload's file. */
export interface Described {
  readonly filename: string
  /** The time after which it expires. If absent, the longest time. */
  readonly seconds?: number
}

/** An output file of a batch. Its id is determined beforehand, so that a repeat replaces it. */
export interface OutputFile {
  readonly id: FileId
  readonly userId: UserId
  readonly filename: string
}

/** Files of users for batches, which only their owner sees. docs/reference/files.md */
export class Files extends Context.Service<
  Files,
  {
    /** Fails with 1202 if the user's quota is used up. */
    readonly admit: (
      userId: UserId,
      bytes: number
    ) => Effect.Effect<void, Problem | StoreUnavailable>
    /**
     * Stores an upload as it arrives. Its description is known only at its end. Fails with 1202 if the user would
     * exceed the quota; then, and if the stream fails, nothing is stored.
     */
    readonly upload: <E, E2>(
      userId: UserId,
      bytes: Stream.Stream<Uint8Array, E>,
      described: Effect.Effect<Described, E2>
    ) => Effect.Effect<FileRow, Problem | StoreUnavailable | E | E2>
    /**
     * Stores an output file of a batch. It counts in its user's quota, but is never refused. Returns `false` if the
     * user was deleted.
     */
    readonly putOutput: <E>(
      file: OutputFile,
      bytes: Stream.Stream<Uint8Array, E>
    ) => Effect.Effect<boolean, StoreUnavailable | E>
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: FileId) => Effect.Effect<FileRow, Problem | StoreUnavailable>
    readonly list: (
      userId: UserId,
      page: FilePage
    ) => Effect.Effect<ReadonlyArray<FileRow>, StoreUnavailable>
    /** All bytes, in chunks. Fails with 2005 if they no longer exist. */
    readonly open: (
      file: Pick<FileRow, "id" | "bytes">
    ) => Effect.Effect<Stream.Stream<Uint8Array, StoreUnavailable>, Problem | StoreUnavailable>
    /** Fails with 2005. A file that an unfinished batch reads is removed after the batch has ended. */
    readonly delete: (userId: UserId, id: FileId) => Effect.Effect<void, Problem | StoreUnavailable>
    /** `false`: some bytes cannot be removed now. Repeating it tries again. */
    readonly deleteAll: (userId: UserId) => Effect.Effect<boolean, StoreUnavailable>
    /** Removes files that have expired or were deleted, and remains of dead processes. */
    readonly removeDue: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/artifacts/Files") {
  static readonly layer = Layer.effect(
    Files,
    Effect.gen(function* () {
      const blobs = yield* ArtifactBlobs
      const store = yield* FileStore
      const { fileBytesPerUser } = yield* AppConfig
      const quota = { bytes: fileBytesPerUser, files: filesMax }
      const tooMuch = tooMuchKept(fileBytesPerUser)
      const remove = makeRemove(blobs, store)

      /** Expired files count until they are removed, so whatever exceeds the quota is tried again without them. */
      const withinQuota = Effect.fnUntraced(function* (
        userId: UserId,
        isWithin: Effect.Effect<boolean, StoreUnavailable>
      ) {
        if (yield* isWithin) return
        yield* remove(userId)
        if (!(yield* isWithin)) return yield* tooMuch
      })

      const get = Effect.fnUntraced(function* (userId: UserId, id: FileId) {
        const found = yield* store.find(userId, id, yield* DateTime.now)
        return Option.isSome(found) ? found.value : yield* noFile(id)
      })

      const deleteFile = Effect.fn("Files.delete")(function* (userId: UserId, id: FileId) {
        if (!(yield* store.delete(userId, id, yield* DateTime.now))) return yield* noFile(id)
        yield* Effect.ignore(remove(userId))
      })

      /** Writes the row after the bytes are stored and before they can be read. */
      const put = Effect.fnUntraced(function* <E, A, E2>(
        id: FileId,
        bytes: Stream.Stream<Uint8Array, E>,
        record: (size: bigint, now: DateTime.Utc) => Effect.Effect<A, E2>
      ) {
        const now = yield* DateTime.now
        let size = 0n
        const counted = Stream.map(bytes, (chunk) => {
          size += BigInt(chunk.length)
          return chunk
        })
        return yield* blobs.put(
          id,
          counted,
          Effect.suspend(() => record(size, now))
        )
      })

      const rowOf = (
        file: Pick<FileRow, "id" | "userId" | "purpose" | "filename">,
        bytes: bigint,
        createdAt: DateTime.Utc,
        seconds = fileSecondsMax
      ) =>
        new FileRow({
          ...file,
          bytes,
          createdAt,
          expiresAt: DateTime.add(createdAt, { seconds })
        })

      return Files.of({
        admit: (userId, bytes) =>
          withinQuota(
            userId,
            Effect.map(store.kept(userId), (kept) => kept + bytes <= fileBytesPerUser)
          ),
        upload: Effect.fn("Files.upload")(function* (userId, bytes, described) {
          const id = makeFileId(DateTime.toEpochMillis(yield* DateTime.now))
          return yield* put(id, bytes, (size, now) =>
            Effect.flatMap(described, ({ filename, seconds }) => {
              const file = { id, userId, purpose: "batch", filename } as const
              const row = rowOf(file, size, now, seconds)
              return Effect.as(withinQuota(userId, store.add(row, quota)), row)
            })
          ).pipe(Effect.onError(() => Effect.ignore(deleteFile(userId, id))))
        }),
        putOutput: Effect.fn("Files.putOutput")(function* (file, bytes) {
          const isKept = yield* put(file.id, bytes, (size, now) =>
            store.add(rowOf({ ...file, purpose: "batch_output" }, size, now), undefined)
          )
          if (!isKept) yield* Effect.ignore(blobs.remove(file.id))
          return isKept
        }),
        get,
        list: (userId, page) =>
          Effect.flatMap(DateTime.now, (now) => store.list(userId, page, now)),
        open: Effect.fnUntraced(function* ({ bytes, id }) {
          const range = { start: 0, end: Number(bytes) - 1 }
          const found = yield* blobs.stream(id, range)
          return Option.isSome(found) ? found.value : yield* noFile(id)
        }),
        delete: deleteFile,
        deleteAll: Effect.fn("Files.deleteAll")(function* (userId) {
          yield* store.deleteAll(userId, yield* DateTime.now)
          return yield* remove(userId)
        }),
        removeDue: remove(undefined).pipe(
          Effect.andThen(DateTime.now),
          Effect.flatMap((now) =>
            blobs.removeOlder(DateTime.subtract(now, { days: fileRemainsDays }), "files")
          ),
          Effect.withSpan("Files.removeDue")
        )
      })
    })
  )
}

/** The number of files that are removed at a time, and how long a file stays whose bytes cannot be removed. */
const removedAtOnceMax = 100
const removalRetry = { hours: 1 } as const

/**
 * Removes the bytes, then the rows, so that the removal of a file is retried if its bytes cannot be removed. Returns
 * `false` in this case.
 */
const makeRemove = (blobs: ArtifactBlobs["Service"], store: FileStore["Service"]) =>
  Effect.fnUntraced(function* (userId: UserId | undefined) {
    const began = yield* DateTime.now
    let isDone = true
    for (let hasMore = true; hasMore;) {
      const due = yield* store.due(began, userId, removedAtOnceMax)
      const [removed, failed] = yield* Effect.partition(
        due,
        (id) => Effect.mapBoth(blobs.remove(id), { onFailure: () => id, onSuccess: () => id }),
        { concurrency: 8 }
      )
      if (removed.length > 0) yield* store.remove(removed)
      if (failed.length > 0) {
        isDone = false
        yield* Effect.logWarning(`Could not remove ${failed.length} files`)
        yield* store.postpone(failed, DateTime.add(began, removalRetry))
      }
      hasMore = due.length === removedAtOnceMax
    }
    return isDone
  })

export const noFile = (id: string): Problem => problem(2005, `There is no file ${id.slice(0, 60)}`)

const tooMuchKept = (bytesMax: number) =>
  new Problem({
    code: 1202,
    detail: `The files of this user would exceed ${bytesMax} bytes in ${filesMax} files: delete some, or wait until they expire, ${fileDays} days after their upload`,
    retryAfterSeconds: quotaRetryAfterSeconds
  })

const quotaRetryAfterSeconds = 60
