import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { MediaFetch, MediaFetchFailed } from "../../../src/egress/MediaFetch.ts"
import { CallbackKeys } from "../../../src/tasks/callbacks/CallbackKeys.ts"
import type { CallbackSignature } from "../../../src/vendors/CallbackScheme.ts"
import type { VendorAccount } from "../../../src/vendors/VendorClient.ts"

const url = "https://vendor.example/jwks.json"

/** Signed with the key that the message names. */
const by = (key: string): CallbackSignature => ({
  signedAtSeconds: 0,
  message: new TextEncoder().encode(key),
  signatures: []
})

const account: VendorAccount = {
  accountId: "fal-queue@fal:test",
  submit: () => Effect.die("not asked"),
  poll: () => Effect.die("not asked"),
  cancel: () => Effect.die("not asked"),
  callbacks: {
    keys: { _tag: "Published", url, parse: (bytes) => new TextDecoder().decode(bytes).split(" ") },
    readSignature: () => undefined,
    verify: ({ message }, key) => new TextDecoder().decode(message) === key
  }
}

/** The vendor's keys, published or of the account, and the number of fetches. */
const world = () => {
  const state = { published: "one", asked: 0, isDown: false }
  const ofAccount: VendorAccount = {
    ...account,
    callbacks: {
      ...account.callbacks!,
      keys: {
        _tag: "OfAccount",
        fetch: Effect.sync(() => {
          state.asked += 1
          return state.published.split(" ")
        })
      }
    }
  }
  const layer = Layer.succeed(MediaFetch, {
    mayWait: () => true,
    open: () => Effect.die("not asked"),
    fetch: () =>
      Effect.suspend(() => {
        state.asked += 1
        return state.isDown
          ? Effect.fail(
              new MediaFetchFailed({ reason: "unreachable", isTransient: true, detail: "down" })
            )
          : Effect.succeed(new TextEncoder().encode(state.published))
      })
  })
  return { state, ofAccount, layer: CallbackKeys.layer.pipe(Layer.provide(layer)) }
}

describe("keys of callbacks", () => {
  const daily = world()
  it.effect("are kept for a day and no longer, in case the vendor withdraws one", () =>
    Effect.gen(function* () {
      const keys = yield* CallbackKeys
      assert.isTrue(yield* keys.isSigned(account, by("one")))
      daily.state.published = "two"
      yield* TestClock.adjust("23 hours")
      assert.isTrue(yield* keys.isSigned(account, by("one")))
      assert.strictEqual(daily.state.asked, 1)
      yield* TestClock.adjust("61 minutes")
      assert.isFalse(yield* keys.isSigned(account, by("one")))
      assert.isTrue(yield* keys.isSigned(account, by("two")))
      assert.strictEqual(daily.state.asked, 2)
    }).pipe(Effect.provide(daily.layer))
  )

  const setBack = world()
  it.effect("are fetched again even if the clock was set back", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(30 * 86_400_000)
      const keys = yield* CallbackKeys
      assert.isTrue(yield* keys.isSigned(account, by("one")))
      setBack.state.published = "two"
      yield* TestClock.setTime(86_400_000)
      assert.isTrue(yield* keys.isSigned(account, by("two")))
      assert.isFalse(yield* keys.isSigned(account, by("one")))
      assert.strictEqual(setBack.state.asked, 2)
    }).pipe(Effect.provide(setBack.layer))
  )

  for (const of of ["everyone", "an account"] as const) {
    const rotated = world()
    it.effect(
      `of ${of} are fetched at most once a minute for any number of callbacks with an unknown key`,
      () =>
        Effect.gen(function* () {
          const keys = yield* CallbackKeys
          const vendor = of === "everyone" ? account : rotated.ofAccount
          const many = (key: string) =>
            Effect.all(
              Array.from({ length: 50 }, () => keys.isSigned(vendor, by(key))),
              { concurrency: "unbounded" }
            )
          assert.notInclude(yield* many("two"), true)
          rotated.state.published = "one two"
          assert.notInclude(yield* many("two"), true)
          assert.strictEqual(rotated.state.asked, 1)
          yield* TestClock.adjust("60 seconds")
          assert.notInclude(yield* many("two"), false)
          assert.strictEqual(rotated.state.asked, 2)
        }).pipe(Effect.provide(rotated.layer))
    )
  }

  const down = world()
  it.effect("are kept when a fetch fails, and without keys no callback is trusted", () =>
    Effect.gen(function* () {
      const keys = yield* CallbackKeys
      down.state.isDown = true
      const refusal = yield* Effect.flip(keys.isSigned(account, by("one")))
      assert.strictEqual(refusal.code, 5003)
      down.state.isDown = false
      yield* TestClock.adjust("1 minute")
      assert.isTrue(yield* keys.isSigned(account, by("one")))
      down.state.isDown = true
      yield* TestClock.adjust("1 hour")
      assert.isFalse(yield* keys.isSigned(account, by("two")))
      assert.isTrue(yield* keys.isSigned(account, by("one")))
      yield* TestClock.adjust("1 day")
      assert.strictEqual((yield* Effect.flip(keys.isSigned(account, by("one")))).code, 5003)
    }).pipe(Effect.provide(down.layer))
  )
})
