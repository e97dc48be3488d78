import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import type { AccountSetting } from "../../../src/domain/Provider.ts"
import { make as makeSimulator } from "../../../src/sandbox/Simulator.ts"
import { Accounts } from "../../../src/vendors/accounts/Accounts.ts"
import { adapters } from "../../../src/vendors/Adapters.ts"
import * as LiveVendors from "../../../src/vendors/LiveVendors.ts"
import { pollIntervalAtAge } from "../../../src/vendors/Polling.ts"
import { VendorClient } from "../../../src/vendors/VendorClient.ts"

/** docs/reference/vendors.md#poll-rates, ADR 0195 */

const accountOf = (adapter: AdapterName, more: Partial<AccountSetting> = {}): AccountSetting => ({
  id: `${adapters[adapter].provider}:a`,
  provider: adapters[adapter].provider,
  key: Redacted.make("key"),
  baseUrl: "https://vendor.test/v1",
  weight: 1,
  ...more
})

const pollRate = (adapter: AdapterName, more?: Partial<AccountSetting>) =>
  Effect.gen(function* () {
    const vendors = yield* VendorClient
    const account = yield* vendors.owner(`${adapter}@${adapters[adapter].provider}:a`)
    return account.rateOf?.("poll", "wan2.5-t2i-preview")
  }).pipe(
    Effect.provide(
      LiveVendors.layer({ simulator: makeSimulator() }).pipe(
        Layer.provide(Catalog.layer),
        Layer.provideMerge(Accounts.layer([accountOf(adapter, more)]))
      )
    )
  )

describe("polls of an account", () => {
  const defaults: ReadonlyArray<readonly [AdapterName, number | undefined]> = [
    ["dashscope-async", 18],
    ["openai-video", 20],
    ["fal-queue", 200],
    ["replicate", 40],
    ["dashscope-sync", undefined],
    ["gemini-image", undefined],
    ["openai-image", undefined]
  ]
  for (const [adapter, calls] of defaults) {
    it.effect(
      `of ${adapter} have ${calls === undefined ? "no limit, because it blocks" : `a limit of ${calls} a second`}, unless the operator sets one`,
      () =>
        Effect.gen(function* () {
          const rate = yield* pollRate(adapter)
          const key = `${adapters[adapter].provider}:a/polls`
          assert.deepStrictEqual(
            rate,
            calls === undefined ? undefined : { key, calls, perMillis: 1000 }
          )
          const set = yield* pollRate(adapter, { polls: 7 })
          assert.deepStrictEqual(set, { key, calls: 7, perMillis: 1000 })
        })
    )
  }

  it("become rarer with the age of the job", () => {
    const ages = [0, 59, 60, 299, 300, 899, 900, 3600]
    assert.deepStrictEqual(
      ages.map((seconds) => Duration.toMillis(pollIntervalAtAge(seconds * 1000))),
      [2500, 2500, 5000, 5000, 10_000, 10_000, 20_000, 20_000]
    )
  })
})
