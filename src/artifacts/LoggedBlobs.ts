import { Effect, Layer, Stream } from "effect"
import { StoreUnavailable } from "../domain/Problem.ts"
import { ArtifactBlobs } from "./ArtifactBlobs.ts"

/** Logs once when the store takes no bytes, for example on a full disk, and once when it takes them again. */
export const logged = <E, R>(
  store: Layer.Layer<ArtifactBlobs, E, R>
): Layer.Layer<ArtifactBlobs, E, R> =>
  Layer.effect(
    ArtifactBlobs,
    Effect.map(ArtifactBlobs, (blobs) => {
      let isFailing = false
      const failed = ({ cause }: StoreUnavailable) =>
        Effect.suspend(() => {
          if (isFailing) return Effect.void
          isFailing = true
          const why = cause instanceof Error ? cause.message : String(cause)
          return Effect.logError(`ARTIFACT_STORE cannot be written to: ${why}`)
        })
      const succeeded = Effect.suspend(() => {
        if (!isFailing) return Effect.void
        isFailing = false
        return Effect.logInfo("ARTIFACT_STORE can be written to again")
      })
      return ArtifactBlobs.of({
        ...blobs,
        put: (id, bytes, record) =>
          Effect.suspend(() => {
            // Whether the failure is that of the store, not that of the source or of Postgres
            let isOwn = true
            const isNot = () => Effect.sync(() => (isOwn = false))
            return blobs
              .put(id, Stream.tapError(bytes, isNot), Effect.tapError(record, isNot))
              .pipe(
                Effect.tap(succeeded),
                Effect.tapError((error) =>
                  isOwn && error instanceof StoreUnavailable ? failed(error) : Effect.void
                )
              )
          })
      })
    })
  ).pipe(Layer.provide(store))
