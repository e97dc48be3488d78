import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer, Logger, Metric, Stream } from "effect"
import { ArtifactBlobs, RemovalRefused } from "../../../src/artifacts/ArtifactBlobs.ts"
import { ArtifactIndexStore } from "../../../src/artifacts/ArtifactIndexStore.ts"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { ArtifactId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { Secrets } from "../../../src/process/secrets/Secrets.ts"

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

  it.effect("is recorded in one statement, after its bytes and before its name", () =>
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
    it.effect(`leaves nothing if its ${failing} cannot be stored`, () =>
      Effect.gen(function* () {
        const { isStored, steps } = yield* stored(failing)
        assert.deepStrictEqual(steps, [...reached, "remove bytes", "remove 1 rows"])
        assert.isFalse(isStored)
      })
    )
  }
})

describe("artifacts that the store neither takes nor removes", () => {
  it.effect("are logged once per removal, and not when stored, because LoggedBlobs does that", () =>
    Effect.gen(function* () {
      const lines: Array<unknown> = []
      const away = Effect.fail(new StoreUnavailable({ cause: "it is away" }))
      const stubs = Layer.mergeAll(
        Layer.mock(ArtifactIndexStore, { add: () => Effect.void, remove: () => Effect.void }),
        Layer.mock(ArtifactBlobs, { put: () => away, remove: () => away }),
        Secrets.layerTest,
        AppConfig.layerOf({})
      )
      const artifacts = yield* Effect.provide(Artifacts, Artifacts.layer.pipe(Layer.provide(stubs)))
      const made = { userId, taskId, role: "output", mime: "image/png" } as const
      const log = Effect.provide(Logger.layer([Logger.make(({ message }) => lines.push(message))]))
      for (let attempt = 0; attempt < 2; attempt += 1) {
        yield* Effect.exit(artifacts.put({ ...made, bytes: new Uint8Array(3) })).pipe(log)
      }
      assert.deepStrictEqual(lines, [])
      const two = ["0", "1"].map((digit) => ArtifactId.make(`art_${digit.repeat(32)}`))
      for (const removals of [1, 2]) {
        assert.isFalse(yield* artifacts.remove(two).pipe(log))
        assert.strictEqual(lines.length, removals)
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("the removal of expired artifacts", () => {
  const ids = Array.from({ length: 1100 }, (_, n) =>
    ArtifactId.make(`art_${String(n).padStart(32, "0")}`)
  )
  const refused = new RemovalRefused({ cause: "it is locked" })
  const silent = new StoreUnavailable({ cause: "it does not respond" })

  /** Runs a sweep over 1100 media and returns what was left. */
  const round = Effect.fnUntraced(function* (
    failureOf: (id: ArtifactId) => RemovalRefused | StoreUnavailable | undefined
  ) {
    const due = new Set(ids)
    const blobs = new Set(ids)
    const tried: Array<ArtifactId> = []
    const postponed: Array<ArtifactId> = []
    const older: Array<number> = []
    const takeOut = (some: ReadonlyArray<ArtifactId>) => some.forEach((id) => due.delete(id))
    const stubs = Layer.mergeAll(
      Layer.mock(ArtifactIndexStore, {
        expired: (_now, limit) => Effect.sync(() => [...due].slice(0, limit)),
        postpone: (some) =>
          Effect.sync(() => {
            takeOut(some)
            postponed.push(...some)
          }),
        remove: (some) => Effect.sync(() => takeOut(some))
      }),
      Layer.mock(ArtifactBlobs, {
        remove: (blob) => {
          const id = ArtifactId.make(blob)
          tried.push(id)
          const failure = failureOf(id)
          return failure === undefined
            ? Effect.sync(() => void blobs.delete(id))
            : Effect.fail(failure)
        },
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
    return { left: [...blobs], tried, postponed, older }
  }, Effect.provide(NodeServices.layer))

  it.effect("continues if the store refuses to delete one (a bucket's object lock)", () =>
    Effect.gen(function* () {
      const locked = ids[3]!
      const { left, older, postponed } = yield* round((id) => (id === locked ? refused : undefined))
      assert.deepStrictEqual(left, [locked])
      assert.deepStrictEqual(postponed, [locked])
      assert.deepStrictEqual(older, [-25 * 3_600_000])
    })
  )

  it.effect("skips any number of media that cannot be removed, and tries each once", () =>
    Effect.gen(function* () {
      const locked = new Set(ids.slice(0, 1050))
      const before = yield* refusals
      const { left, postponed, tried } = yield* round((id) =>
        locked.has(id) ? refused : undefined
      )
      assert.deepStrictEqual(left, [...locked])
      assert.deepStrictEqual(postponed, [...locked])
      assert.deepStrictEqual(tried, ids)
      assert.strictEqual((yield* refusals) - before, 1050)
    })
  )

  it.effect("ends when the store does not respond, and postpones the media that it tried", () =>
    Effect.gen(function* () {
      const { postponed, tried } = yield* round(() => silent)
      assert.deepStrictEqual(tried, ids.slice(0, 500))
      assert.deepStrictEqual(postponed, tried)
      // A medium that fails every time does not end a sweep
      const { left } = yield* round((id) => (id === ids[0] ? silent : undefined))
      assert.deepStrictEqual(left, [ids[0]])
    })
  )
})

/** The metric, summed over all tests of this process. */
const refusals = Effect.map(Metric.snapshot, (metrics) => {
  const found = metrics.find(
    ({ attributes, id }) =>
      id === "gateway_artifact_removals_failed_total" && attributes?.["cause"] === "refused"
  )
  return found?.type === "Counter" ? Number(found.state.count) : 0
})
