import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Secrets } from "../../../src/process/secrets/Secrets.ts"
import { ManageReplays } from "../../../src/users/ManageReplays.ts"
import { ManageReplayStore } from "../../../src/users/ManageReplayStore.ts"
import { advance } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const replays = ManageReplays.layer.pipe(
  Layer.provide(Layer.merge(ManageReplayStore.layer, Secrets.layerTest)),
  Layer.provideMerge(stores.postgres)
)

const claim = (key: string, body = "a", caller = "operator") =>
  Effect.flatMap(ManageReplays, (them) =>
    them.claim({ caller, key, requestHash: Buffer.from(body) })
  )

/** The first request with a key, or one that takes the key over. */
const first = Effect.fnUntraced(function* (key: string, body?: string, caller?: string) {
  const claimed = yield* claim(key, body, caller)
  if (claimed._tag !== "Claimed") return assert.fail("replayed")
  return claimed
})

/** A repeat, while the clock runs. */
const repeat = Effect.fnUntraced(function* (key: string, body?: string, caller?: string) {
  const claiming = yield* Effect.forkChild(Effect.exit(claim(key, body, caller)))
  while (claiming.pollUnsafe() === undefined) yield* advance("100 millis", "50 millis")
  return yield* yield* Fiber.join(claiming)
})

const refusal = (key: string, body?: string) =>
  Effect.map(Effect.flip(repeat(key, body)), (problem) => "code" in problem && problem.code)

const replayed = (key: string, body?: string, caller?: string) =>
  Effect.map(repeat(key, body, caller), (found) =>
    found._tag === "Replayed" ? found.response.body : undefined
  )

const success = (body: string) => Exit.succeed({ status: 201, body })

layer(replays)("the claim of an idempotency key", (it) => {
  it.effect("can be taken over after 60 seconds without a response, only by the same request", () =>
    Effect.gen(function* () {
      yield* first("k")
      assert.strictEqual(yield* refusal("k", "b"), 2008)
      // The repeat waits for 10 seconds
      yield* TestClock.adjust("46 seconds")
      assert.strictEqual(yield* refusal("k"), 2010)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* refusal("k", "b"), 2008)
      const { complete } = yield* first("k")
      yield* complete(success("second"))
      assert.strictEqual(yield* replayed("k"), "second")
    })
  )

  it.effect("belongs to the request that took it over: a late end of the first has no effect", () =>
    Effect.gen(function* () {
      const late = yield* first("l")
      yield* TestClock.adjust("61 seconds")
      const { complete } = yield* first("l")
      yield* complete(success("second"))
      yield* late.complete(success("first"))
      yield* late.complete(Exit.fail("refused"))
      assert.strictEqual(yield* replayed("l"), "second")
    })
  )

  it.effect("is in progress again after an expiry: the old response is not repeated", () =>
    Effect.gen(function* () {
      const old = yield* first("o")
      yield* old.complete(success("old"))
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual(yield* replayed("o"), "old")
      yield* TestClock.adjust("24 hours")
      const { complete } = yield* first("o")
      assert.strictEqual(yield* refusal("o"), 2010)
      yield* complete(success("new"))
      assert.strictEqual(yield* replayed("o"), "new")
    })
  )

  it.effect("is freed by a failure; the other keys, and those of other callers, stay", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* first("f"), yield* first("g")]
      const other = yield* first("f", "a", "other")
      yield* two.complete(success("two"))
      yield* other.complete(success("other"))
      yield* one.complete(Exit.succeed({ status: 300, body: "refused" }))
      yield* first("f")
      assert.strictEqual(yield* replayed("g"), "two")
      assert.strictEqual(yield* replayed("f", "a", "other"), "other")
    })
  )
})
