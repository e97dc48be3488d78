import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import type { Provider } from "../../../src/domain/Provider.ts"
import { make as makeSimulator } from "../../../src/sandbox/Simulator.ts"
import { Accounts } from "../../../src/vendors/accounts/Accounts.ts"
import { layer as liveVendors } from "../../../src/vendors/LiveVendors.ts"
import { VendorClient } from "../../../src/vendors/VendorClient.ts"

const account = (provider: Provider, name: string, weight = 1) => ({
  id: `${provider}:${name}`,
  provider,
  key: Redacted.make(`key-${name}`),
  baseUrl: "https://upstream.example",
  weight
})
const a = account("openai", "a", 9)
const b = account("openai", "b")
const fal = account("fal", "one")
const otherFal = account("fal", "two")

const answer = (status: number, headers: Record<string, string> = {}) => ({
  status,
  headers,
  body: new Uint8Array()
})
const usedUp = { "retry-after": "30", "x-ratelimit-remaining-requests": "0" }
const gpt = { model: "gpt-4o", user: "user" }
const mini = { model: "gpt-4o-mini", user: "user" }

const ids = (order: ReturnType<Accounts["Service"]["order"]>) =>
  Result.match(order, {
    onSuccess: (all) => all.map(({ id }) => id),
    onFailure: ({ reason, retryAfterMillis, soonest }) => ({ reason, retryAfterMillis, soonest })
  })

const count = (order: ReturnType<Accounts["Service"]["order"]>): number =>
  Result.match(order, { onSuccess: (all) => all.length, onFailure: () => 0 })

const withAccounts = Accounts.layer([a, b, fal, otherFal])

/** docs/reference/passthrough.md#accounts-and-failover */
describe("the accounts that a call may be sent to", () => {
  it.effect("leave out an account at its limit for this model, unless no other is left", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      accounts.observe(a, gpt, answer(429, { "retry-after": "30" }), 0)
      assert.deepStrictEqual(ids(accounts.order("openai", gpt, 1)), ["openai:b"])
      assert.strictEqual(count(accounts.order("openai", mini, 1)), 2)
      accounts.observe(b, gpt, answer(429, { "retry-after": "20" }), 1)
      assert.deepStrictEqual(ids(accounts.order("openai", gpt, 2)), ["openai:b"])
      assert.strictEqual(count(accounts.order("openai", gpt, 30_000)), 2)
    }).pipe(Effect.provide(withAccounts))
  )

  it.effect("change with the catalog, and keep their state at their vendor", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      accounts.observe(a, gpt, answer(429, { "retry-after": "30" }), 0)
      const { key, ...same } = a
      const again = { ...same, key: Redacted.make(Redacted.value(key)) }
      const acme = { ...b, id: "acme:one", provider: "acme" }
      accounts.setConfigured([again, { ...b, baseUrl: "https://elsewhere.example" }, acme])
      assert.deepStrictEqual(ids(accounts.order("openai", gpt, 1)), ["openai:b"])
      assert.deepStrictEqual(ids(accounts.order("acme", gpt, 1)), ["acme:one"])
      assert.isFalse(accounts.isConfigured("fal"))
      assert.deepStrictEqual(
        Result.getOrThrow(accounts.order("openai", gpt, 1, [b])).map(({ baseUrl }) => baseUrl),
        ["https://elsewhere.example"]
      )
    }).pipe(Effect.provide(withAccounts))
  )

  it.effect("include the account of a job whose vendor has left and come back", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      accounts.setConfigured([a, b])
      accounts.setDeparted([fal])
      assert.isTrue(accounts.isDraining(fal))
      assert.strictEqual(Option.getOrThrow(accounts.find(fal.id)).id, fal.id)
      accounts.setConfigured([a, b, fal])
      for (const departed of [[fal], []]) {
        assert.isFalse(accounts.isDraining(fal))
        assert.strictEqual(Option.getOrThrow(accounts.find(fal.id)).id, fal.id)
        const listed = (yield* accounts.details).map(({ id }) => id)
        assert.deepStrictEqual(listed, [a.id, b.id, fal.id])
        accounts.setDeparted(departed)
      }
      assert.strictEqual(Option.getOrThrow(accounts.find(fal.id)).id, fal.id)
    }).pipe(Effect.provide(withAccounts))
  )

  it.effect("are none if the vendor has said for all of them that nothing is left", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      accounts.observe(a, gpt, answer(429, usedUp), 0)
      accounts.observe(b, gpt, answer(429, { ...usedUp, "retry-after": "10" }), 0)
      assert.deepStrictEqual(ids(accounts.order("openai", gpt, 1000)), {
        reason: "rate",
        retryAfterMillis: 9000,
        soonest: "openai:b"
      })
    }).pipe(Effect.provide(withAccounts))
  )

  it.effect("are limited over all models if the vendor counts models together", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      accounts.observe(fal, { model: "fal-ai/x", user: null }, answer(429, usedUp), 0)
      const order = accounts.order("fal", { model: "fal-ai/y", user: null }, 1)
      assert.deepStrictEqual(ids(order), ["fal:two"])
    }).pipe(Effect.provide(withAccounts))
  )

  it.effect(
    "leave out a refused account for all models, and after a job's refusal for all users",
    () =>
      Effect.gen(function* () {
        const accounts = yield* Accounts
        accounts.observe(a, gpt, answer(401), 0)
        assert.deepStrictEqual(ids(accounts.order("openai", mini, 1)), ["openai:b"])
        assert.strictEqual(count(accounts.order("openai", { ...mini, user: "another" }, 1)), 2)
        accounts.observe(b, { model: "gpt-image-2", user: null }, answer(402), 0)
        assert.deepStrictEqual(ids(accounts.order("openai", gpt, 10_000)), {
          reason: "broken",
          retryAfterMillis: 50_000,
          soonest: "openai:a"
        })
        assert.strictEqual(count(accounts.order("openai", gpt, 60_000)), 2)
      }).pipe(Effect.provide(withAccounts))
  )

  it.effect("include a refused account again after its first other response", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      accounts.observe(a, gpt, answer(401), 0)
      accounts.observe(a, { ...gpt, user: "another" }, answer(200), 1)
      assert.strictEqual(count(accounts.order("openai", gpt, 2)), 2)
    }).pipe(Effect.provide(withAccounts))
  )

  it.effect("remember only a limited number of models, because clients may name any", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      for (let i = 0; i <= 1000; i += 1) {
        accounts.observe(a, { ...gpt, model: `m${i}` }, answer(429, { "retry-after": "30" }), 0)
      }
      assert.strictEqual(count(accounts.order("openai", { ...gpt, model: "m0" }, 1)), 2)
      assert.strictEqual(count(accounts.order("openai", { ...gpt, model: "m1" }, 1)), 1)
    }).pipe(Effect.provide(withAccounts))
  )
})

describe("the account of a new job", () => {
  it.effect("is another account only if this model is at its limit", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const vendors = yield* VendorClient
      const chosen = (upstreamModel: string) =>
        Effect.map(
          vendors.choose({ adapter: "openai-image", upstreamModel }),
          ({ accountId }) => accountId
        )
      accounts.observe(a, { model: "gpt-image-2", user: null }, answer(429, usedUp), 0)
      assert.strictEqual(yield* chosen("gpt-image-2"), "openai-image@openai:b")
      assert.strictEqual(yield* chosen("gpt-image-1.5"), "openai-image@openai:a")
      accounts.observe(b, { model: "gpt-image-2", user: null }, answer(429, usedUp), 0)
      yield* TestClock.adjust("10 seconds")
      // The response of this account contains the wait
      assert.strictEqual(yield* chosen("gpt-image-2"), "openai-image@openai:a")
    }).pipe(
      Effect.provide(
        liveVendors({ simulator: makeSimulator() }).pipe(
          Layer.provide(Catalog.layer),
          Layer.provideMerge(withAccounts)
        )
      ),
      Effect.scoped
    )
  )
})
