import { Context, Effect, FileSystem, Layer, Option, Path } from "effect"
import type { PlatformError } from "effect"
import type { ArtifactId } from "../domain/Ids.ts"
import { StoreUnavailable } from "../domain/Problem.ts"

/** Where the bytes of kept media lie. */
export class ArtifactBlobs extends Context.Service<
  ArtifactBlobs,
  {
    /** Written whole or not at all; the same id again replaces it. */
    readonly put: (id: ArtifactId, bytes: Uint8Array) => Effect.Effect<void, StoreUnavailable>
    readonly get: (id: ArtifactId) => Effect.Effect<Option.Option<Uint8Array>, StoreUnavailable>
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
        const failed = (cause: PlatformError.PlatformError) => new StoreUnavailable({ cause })
        return ArtifactBlobs.of({
          put: Effect.fn("ArtifactBlobs.put")(function* (id, bytes) {
            yield* fs.makeDirectory(folderOf(id), { recursive: true })
            const unfinished = `${fileOf(id)}.part`
            yield* Effect.scoped(
              Effect.gen(function* () {
                const file = yield* fs.open(unfinished, { flag: "w" })
                yield* file.writeAll(bytes)
                yield* file.sync
              })
            )
            yield* fs.rename(unfinished, fileOf(id))
          }, Effect.mapError(failed)),
          get: (id) =>
            fs.readFile(fileOf(id)).pipe(
              Effect.asSome,
              Effect.catch((error) =>
                error.reason._tag === "NotFound"
                  ? Effect.succeed(Option.none<Uint8Array>())
                  : Effect.fail(failed(error))
              )
            ),
          remove: (id) => fs.remove(fileOf(id), { force: true }).pipe(Effect.mapError(failed))
        })
      })
    )
}
