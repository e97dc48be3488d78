import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ArtifactBlobs } from "../../../src/artifacts/ArtifactBlobs.ts"
import { ArtifactIndexStore } from "../../../src/artifacts/ArtifactIndexStore.ts"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { ArtifactId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { Secrets } from "../../../src/process/Secrets.ts"

describe("the removal of expired artifacts", () => {
  it.effect("continues when the store refuses to delete one (a bucket's object lock)", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 1100 }, (_, n) =>
        ArtifactId.make(`art_${String(n).padStart(32, "0")}`)
      )
      const locked = ids[3]!
      const rows = new Set(ids)
      const blobs = new Set(ids)
      const stubs = Layer.mergeAll(
        Layer.mock(ArtifactIndexStore, {
          expired: (_now, limit) => Effect.sync(() => [...rows].slice(0, limit)),
          remove: (removed) => Effect.sync(() => removed.forEach((id) => rows.delete(id)))
        }),
        Layer.mock(ArtifactBlobs, {
          remove: (id) =>
            id === locked
              ? Effect.fail(new StoreUnavailable({ cause: "it is locked" }))
              : Effect.sync(() => void blobs.delete(id))
        }),
        Secrets.layerTest,
        AppConfig.layerOf({})
      )
      const { removeExpired } = yield* Effect.provide(
        Artifacts,
        Artifacts.layer.pipe(Layer.provide(stubs))
      )
      yield* removeExpired
      assert.deepStrictEqual([...blobs], [locked])
      assert.deepStrictEqual([...rows], [locked])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
