import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { makeIssuerKeys } from "../../../src/users/IssuerKeys.ts"
import { eventually } from "../../support/gateway.ts"
import { makeKey, TokenIssuer } from "../../support/tokenIssuer.ts"

/** Keys of the issuer, over loopback. docs/reference/mcp.md#oauth */

const makeKeys = Effect.gen(function* () {
  const { issuer, state } = yield* TokenIssuer
  state.isDown = false
  const keys = yield* makeIssuerKeys({
    issuer: new URL(issuer),
    clientId: "gateway",
    clientSecret: Option.none(),
    operators: [],
    tokenScopes: []
  })
  const readsAfter = (reads: number) =>
    eventually(
      Effect.sync(() => state.reads),
      (now) => now > reads
    )
  return { keys, state, readsAfter }
})

layer(TokenIssuer.layer, { excludeTestServices: false })("keys of the issuer", (it) => {
  it.effect(
    "known keys remain valid for an hour while the issuer is down, and it is asked every ten seconds",
    () =>
      Effect.gen(function* () {
        const { keys, readsAfter, state } = yield* makeKeys
        const first = yield* keys("first")
        state.isDown = true
        yield* TestClock.adjust("59 minutes")
        const { reads } = state
        for (let n = 0; n < 20; n += 1) assert.deepStrictEqual(yield* keys("first"), first)
        yield* readsAfter(reads)
        for (let n = 0; n < 20; n += 1) yield* keys("first")
        assert.strictEqual(state.reads, reads + 1)
        yield* TestClock.adjust("61 seconds")
        assert.strictEqual((yield* Effect.flip(keys("first"))).code, 5002)
        state.isDown = false
        assert.strictEqual((yield* Effect.flip(keys("first"))).code, 5002)
        yield* TestClock.adjust("10 seconds")
        assert.lengthOf((yield* keys("first")).keys.keys, 1)
      })
  )

  it.effect("a caller that stops waiting for a read does not end it for the others", () =>
    Effect.gen(function* () {
      const { keys, state } = yield* makeKeys
      const { reads } = state
      const all = yield* Effect.all(
        [
          Effect.timeoutOption(keys("first"), 0),
          ...Array.from({ length: 20 }, () => keys("first"))
        ],
        { concurrency: "unbounded" }
      )
      assert.lengthOf(all, 21)
      assert.strictEqual(state.reads, reads + 1)
    })
  )

  it.effect("a response that is a redirect, is not a set of keys or is too long is not used", () =>
    Effect.gen(function* () {
      const { keys, readsAfter, state } = yield* makeKeys
      for (const answer of ["[]", '{"keys":[1]}', "not JSON", " ".repeat(300_000)]) {
        const { reads } = state
        state.answer = answer
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* Effect.flip(keys("first"))).code, 5002, answer.slice(0, 20))
        yield* readsAfter(reads)
      }
      state.answer = undefined
      state.movedTo = "/other"
      const { reads } = state
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Effect.flip(keys("first"))).code, 5002, "a redirect")
      assert.strictEqual(state.reads, reads + 1)
      state.movedTo = undefined
      yield* TestClock.adjust("10 seconds")
      state.keys = [makeKey("second")]
      assert.strictEqual((yield* keys("second")).keys.keys[0]!.kid, "second")
    })
  )
})
