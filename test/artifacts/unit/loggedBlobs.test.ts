import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Stream } from "effect"
import { ArtifactBlobs } from "../../../src/artifacts/ArtifactBlobs.ts"
import { logged } from "../../../src/artifacts/LoggedBlobs.ts"
import { makeArtifactId, makeFileId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"

const away = (why: string) => Effect.fail(new StoreUnavailable({ cause: new Error(why) }))

/** A store that writes the bytes, runs the record, and then may be full. */
const storeOf = (isFull: () => boolean) =>
  Layer.mock(ArtifactBlobs, {
    put: (_id, bytes, record) =>
      Effect.andThen(
        Stream.runDrain(bytes),
        Effect.tap(record, () => (isFull() ? away("ENOSPC: no space left") : Effect.void))
      )
  })

describe("an artifact store that accepts no writes", () => {
  it.effect("is logged once with the reason, and again when it accepts them", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => {
        lines.push(String(Array.isArray(message) ? message[0] : message))
      })
      let failing: "source" | "row" | "store" | "nothing" = "source"
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        for (failing of ["source", "row", "store", "store", "nothing", "nothing"] as const) {
          const bytes = failing === "source" ? away("no source") : Effect.succeed(new Uint8Array(3))
          const record = failing === "row" ? away("no Postgres") : Effect.void
          for (const id of [makeFileId(1), makeArtifactId(1)]) {
            yield* Effect.exit(blobs.put(id, Stream.fromEffect(bytes), record))
          }
        }
      }).pipe(Effect.provide([logged(storeOf(() => failing === "store")), Logger.layer([logger])]))
      assert.deepStrictEqual(lines, [
        "ARTIFACT_STORE cannot be written to: ENOSPC: no space left",
        "ARTIFACT_STORE can be written to again"
      ])
    })
  )
})
