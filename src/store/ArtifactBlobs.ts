import { ByteSize, Context, Effect, FileSystem, Layer, Option, Path, Stream } from "effect"
import type { PlatformError } from "effect"
import type { ArtifactId } from "../domain/Ids.ts"
import { StoreUnavailable } from "../domain/Problem.ts"

/** A part of a medium: bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Where the bytes of kept media lie. */
export class ArtifactBlobs extends Context.Service<
  ArtifactBlobs,
  {
    /** Written whole or not at all; the same id again replaces it. */
    readonly put: (id: ArtifactId, bytes: Uint8Array) => Effect.Effect<void, StoreUnavailable>
    readonly get: (id: ArtifactId) => Effect.Effect<Option.Option<Uint8Array>, StoreUnavailable>
    /**
     * The bytes of a range in pieces; `None` when there is no such medium. The range must lie within
     * it. Must be run in the scope of whoever reads it, and opens nothing before that.
     */
    readonly stream: (
      id: ArtifactId,
      range: ByteRange
    ) => Effect.Effect<Option.Option<Stream.Stream<Uint8Array, StoreUnavailable>>, StoreUnavailable>
    /** Removing what is not there is no fault. */
    readonly remove: (id: ArtifactId) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/store/ArtifactBlobs") {
  /** Files in a directory, spread over 256 subfolders by the id's last two digits. */
  static readonly layerDirectory = (directory: string) =>
    Layer.effect(
      ArtifactBlobs,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const folderOf = (id: ArtifactId) => path.join(directory, id.slice(-2))
        const fileOf = (id: ArtifactId) => path.join(folderOf(id), id)
        yield* removeUnfinished(directory)
        return ArtifactBlobs.of({
          put: Effect.fn("ArtifactBlobs.put")(function* (id, bytes) {
            yield* fs.makeDirectory(folderOf(id), { recursive: true })
            const unfinished = `${fileOf(id)}${unfinishedEnding}`
            yield* Effect.scoped(
              Effect.gen(function* () {
                const file = yield* fs.open(unfinished, { flag: "w" })
                yield* file.writeAll(bytes)
                yield* file.sync
              })
            )
            yield* fs.rename(unfinished, fileOf(id))
          }, Effect.mapError(failed)),
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
          remove: (id) => fs.remove(fileOf(id), { force: true }).pipe(Effect.mapError(failed))
        })
      })
    )
}

const failed = (cause: PlatformError.PlatformError) => new StoreUnavailable({ cause })

const noneIfMissing = <A>(self: Effect.Effect<A, PlatformError.PlatformError>) =>
  self.pipe(
    Effect.asSome,
    Effect.catch((error) =>
      error.reason._tag === "NotFound"
        ? Effect.succeed(Option.none<A>())
        : Effect.fail(failed(error))
    )
  )

const unfinishedEnding = ".part"

/** What a process that died was writing. Younger ones may still be written by another process. */
const unfinishedMillisMax = 3_600_000

const removeUnfinished = Effect.fnUntraced(
  function* (directory: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    const names = yield* fs.readDirectory(directory, { recursive: true })
    yield* Effect.forEach(
      names.filter((name) => name.endsWith(unfinishedEnding)),
      Effect.fnUntraced(function* (name) {
        const file = path.join(directory, name)
        const { mtime } = yield* fs.stat(file)
        const written = Option.match(mtime, { onNone: () => now, onSome: (it) => it.getTime() })
        if (now - written > unfinishedMillisMax) yield* fs.remove(file, { force: true })
      }),
      { discard: true }
    )
  },
  // No folder yet, or a file that somebody else removed
  (self) => Effect.ignore(self)
)
