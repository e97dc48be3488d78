import { ByteSize, Context, Effect, FileSystem, Layer, Option, Path, Schema, Stream } from "effect"
import type { PlatformError } from "effect"
import { randomUUID } from "node:crypto"
import { unlinkSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { makeFolder } from "../db/MakeFolder.ts"
import type { ArtifactId } from "../domain/Ids.ts"
import { StoreUnavailable } from "../domain/Problem.ts"

/** `ARTIFACT_STORE` cannot be used: one line with the remedy. docs/reference/configuration.md#artifact-store */
export class ArtifactStoreUnusable extends Schema.TaggedError<ArtifactStoreUnusable>()(
  "ArtifactStoreUnusable",
  { message: Schema.String }
) {}

/** A part of a medium: bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The bytes of stored media. */
export class ArtifactBlobs extends Context.Service<
  ArtifactBlobs,
  {
    /**
     * Writes the chunks as they come. Whenever the process dies, the medium is complete or absent; a
     * second `put` of the same id replaces it.
     */
    readonly put: <E>(
      id: ArtifactId,
      bytes: Stream.Stream<Uint8Array, E>
    ) => Effect.Effect<void, StoreUnavailable | E>
    readonly get: (id: ArtifactId) => Effect.Effect<Option.Option<Uint8Array>, StoreUnavailable>
    /**
     * The bytes of a range in chunks; `None` when there is no such medium. The range must be within it.
     * Nothing is opened before the stream runs, in the scope of its reader.
     */
    readonly stream: (
      id: ArtifactId,
      range: ByteRange
    ) => Effect.Effect<Option.Option<Stream.Stream<Uint8Array, StoreUnavailable>>, StoreUnavailable>
    /** Succeeds when there is no such medium. */
    readonly remove: (id: ArtifactId) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/artifacts/ArtifactBlobs") {
  /** Files in a directory, in 256 subfolders by the id's last two digits. */
  static readonly layerDirectory = (directory: string) =>
    Layer.effect(
      ArtifactBlobs,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const folderOf = (id: ArtifactId) => path.join(directory, id.slice(-2))
        const fileOf = (id: ArtifactId) => path.join(folderOf(id), id)
        yield* probe(directory)
        yield* removeUnfinished(directory)
        const write = <E>(id: ArtifactId, bytes: Stream.Stream<Uint8Array, E>, to: string) =>
          Effect.gen(function* () {
            yield* orFailed(fs.makeDirectory(folderOf(id), { recursive: true }))
            yield* Effect.scoped(
              Effect.gen(function* () {
                const file = yield* orFailed(fs.open(to, { flag: "w" }))
                yield* Stream.runForEach(bytes, (chunk) => orFailed(file.writeAll(chunk)))
                yield* orFailed(file.sync)
              })
            )
            yield* orFailed(fs.rename(to, fileOf(id)))
          }).pipe(Effect.onError(() => Effect.ignore(fs.remove(to, { force: true }))))
        return ArtifactBlobs.of({
          put: (id, bytes) =>
            Effect.withSpan(
              write(id, bytes, `${fileOf(id)}${unfinishedExtension}`),
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
            Effect.forEach(
              [fileOf(id), `${fileOf(id)}${unfinishedExtension}`],
              (file) => orFailed(fs.remove(file, { force: true })),
              { discard: true }
            )
        })
      })
    )
}

const failed = (cause: PlatformError.PlatformError) => new StoreUnavailable({ cause })

const orFailed = <A, R>(self: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.mapError(self, failed)

/** Writes and removes a file, so that an unusable folder fails the start. */
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
        message: `ARTIFACT_STORE: the folder ${resolve(directory)} cannot be written to (${cause instanceof Error ? cause.message : "unknown fault"}); make it a folder that this user may write to, or set s3://bucket/prefix`
      })
  })

const noneIfMissing = <A>(self: Effect.Effect<A, PlatformError.PlatformError>) =>
  self.pipe(
    Effect.asSome,
    Effect.catch((error) =>
      error.reason._tag === "NotFound"
        ? Effect.succeed(Option.none<A>())
        : Effect.fail(failed(error))
    )
  )

const unfinishedExtension = ".part"

/** An older unfinished file was left by a process that died; a younger one may still be written. */
const unfinishedMillisMax = 3_600_000

const removeUnfinished = Effect.fnUntraced(
  function* (directory: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    const names = yield* fs.readDirectory(directory, { recursive: true })
    yield* Effect.forEach(
      names.filter((name) => name.endsWith(unfinishedExtension)),
      Effect.fnUntraced(function* (name) {
        const file = path.join(directory, name)
        const { mtime } = yield* fs.stat(file)
        const written = Option.match(mtime, { onNone: () => now, onSome: (it) => it.getTime() })
        if (now - written > unfinishedMillisMax) yield* fs.remove(file, { force: true })
      }),
      { discard: true }
    )
  },
  // Another process may have removed the file
  (self) => Effect.ignore(self)
)
