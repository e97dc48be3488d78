import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer, Stream } from "effect"
import { ArtifactBlobs } from "../../../src/artifacts/ArtifactBlobs.ts"
import { ArtifactIndexStore } from "../../../src/artifacts/ArtifactIndexStore.ts"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { ArtifactId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { Secrets } from "../../../src/process/Secrets.ts"

const userId = UserId.make("0190a1b2-0000-7000-8000-000000000001")
const taskId = TaskId.make("0190a1b2-0000-7000-8000-000000000002")

describe("a stored artifact", () => {
  const stored = Effect.fnUntraced(function* (failing: "nothing" | "row" | "bytes") {
    const steps: Array<string> = []
    const step = (name: string) => Effect.sync(() => void steps.push(name))
    const broken = Effect.fail(new StoreUnavailable({ cause: "it is full" }))
    const stubs = Layer.mergeAll(
      Layer.mock(ArtifactIndexStore, {
        add: ({ bytes }) =>
          Effect.andThen(step(`row of ${bytes}`), failing === "row" ? broken : Effect.void),
        remove: (ids) => step(`remove ${ids.length} rows`)
      }),
      Layer.mock(ArtifactBlobs, {
        put: (_id, bytes, record) =>
          Stream.runDrain(bytes).pipe(
            Effect.andThen(step("bytes")),
            Effect.andThen(record),
            Effect.tap(() => (failing === "bytes" ? broken : step("name")))
          ),
        remove: () => step("remove bytes")
      }),
      Secrets.layerTest,
      AppConfig.layerOf({})
    )
    const { put } = yield* Effect.provide(Artifacts, Artifacts.layer.pipe(Layer.provide(stubs)))
    const made = { userId, taskId, role: "output", mime: "image/png" } as const
    const exit = yield* Effect.exit(put({ ...made, bytes: new Uint8Array(3) }))
    return { steps, isStored: Exit.isSuccess(exit) }
  }, Effect.provide(NodeServices.layer))

  it.effect("has its row in one statement, after its bytes and before its name", () =>
    Effect.gen(function* () {
      const { isStored, steps } = yield* stored("nothing")
      assert.deepStrictEqual(steps, ["bytes", "row of 3", "name"])
      assert.isTrue(isStored)
    })
  )

  for (const [failing, reached] of [
    ["row", ["bytes", "row of 3"]],
    ["bytes", ["bytes", "row of 3"]]
  ] as const) {
    it.effect(`leaves nothing when its ${failing} cannot be stored`, () =>
      Effect.gen(function* () {
        const { isStored, steps } = yield* stored(failing)
        assert.deepStrictEqual(steps, [...reached, "remove bytes", "remove 1 rows"])
        assert.isFalse(isStored)
      })
    )
  }
})

describe("the removal of expired artifacts", () => {
  it.effect("continues when the store refuses to delete one (a bucket's object lock)", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 1100 }, (_, n) =>
        ArtifactId.make(`art_${String(n).padStart(32, "0")}`)
      )
      const locked = ids[3]!
      const rows = new Set(ids)
      const blobs = new Set(ids)
      const older: Array<number> = []
      const stubs = Layer.mergeAll(
        Layer.mock(ArtifactIndexStore, {
          expired: (_now, limit) => Effect.sync(() => [...rows].slice(0, limit)),
          remove: (removed) => Effect.sync(() => removed.forEach((id) => rows.delete(id)))
        }),
        Layer.mock(ArtifactBlobs, {
          remove: (id) =>
            id === locked
              ? Effect.fail(new StoreUnavailable({ cause: "it is locked" }))
              : Effect.sync(() => void blobs.delete(id)),
          removeOlder: (than) => Effect.sync(() => void older.push(DateTime.toEpochMillis(than)))
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
      assert.deepStrictEqual(older, [-25 * 3_600_000])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
