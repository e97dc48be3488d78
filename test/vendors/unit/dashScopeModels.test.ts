import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import { builtInProviders } from "../../../src/domain/Provider.ts"
import type { AccountSetting, Region } from "../../../src/domain/Provider.ts"
import { make as makeSimulator } from "../../../src/sandbox/Simulator.ts"
import { Accounts } from "../../../src/vendors/accounts/Accounts.ts"
import { hasModel, modelIdAt, regionOf } from "../../../src/vendors/dashscope/DashScopeModels.ts"
import { rateOf, slotsOf } from "../../../src/vendors/dashscope/DashScopeRates.ts"
import * as LiveVendors from "../../../src/vendors/LiveVendors.ts"
import { VendorClient } from "../../../src/vendors/VendorClient.ts"

const accountAt = (baseUrl: string, region?: Region): AccountSetting => ({
  id: "dashscope:a",
  provider: "dashscope",
  key: Redacted.make("k"),
  baseUrl,
  weight: 1,
  ...(region === undefined ? {} : { region })
})

const beijing = accountAt(builtInProviders.find(({ name }) => name === "dashscope")!.base)
const singapore = accountAt("https://dashscope-intl.aliyuncs.com/api/v1")
const virginia = accountAt("https://dashscope-us.aliyuncs.com/api/v1")
const tokyo = accountAt("https://llm-1.ap-northeast-1.maas.aliyuncs.com/api/v1")
const proxy = accountAt("https://proxy.example/dashscope")

/** docs/reference/vendors.md#dashscope-regions */
describe("regions of DashScope", () => {
  it("are known by the vendor's hosts, but the setting takes precedence", () => {
    const workspace = accountAt("https://llm-1.cn-beijing.maas.aliyuncs.com/api/v1")
    assert.deepEqual([beijing, singapore, virginia, tokyo, workspace, proxy].map(regionOf), [
      "cn-beijing",
      "ap-southeast-1",
      "us-east-1",
      "ap-northeast-1",
      "cn-beijing",
      undefined
    ])
    assert.strictEqual(regionOf(accountAt(proxy.baseUrl, "ap-southeast-1")), "ap-southeast-1")
    assert.strictEqual(
      regionOf(accountAt("https://dashscope.aliyuncs.com.evil.example")),
      undefined
    )
  })

  it("name models of 2.1 differently, whichever id the catalog has", () => {
    for (const kind of ["kf2v-plus", "vace-plus"]) {
      for (const id of [`wan2.1-${kind}`, `wanx2.1-${kind}`]) {
        assert.strictEqual(modelIdAt(beijing, id), `wanx2.1-${kind}`)
        assert.strictEqual(modelIdAt(singapore, id), `wan2.1-${kind}`)
        assert.strictEqual(modelIdAt(proxy, id), id)
      }
    }
    assert.strictEqual(modelIdAt(beijing, "wan2.5-t2v-preview"), "wan2.5-t2v-preview")
  })

  it("have every built-in model in Beijing and Singapore, and none in Virginia", () => {
    const models = builtInEntries
      .filter(({ adapter }) => adapter.startsWith("dashscope"))
      .map(({ upstreamModel }) => upstreamModel)
    for (const model of models) {
      assert.isTrue(hasModel(beijing, model), model)
      assert.isTrue(hasModel(singapore, model), model)
      assert.isFalse(hasModel(virginia, model), model)
    }
    assert.isTrue(hasModel(virginia, "wan2.6-t2v"))
    assert.isTrue(hasModel(virginia, "wan2.6-t2v-us"))
    assert.isFalse(hasModel(beijing, "wan2.6-t2v-us"))
  })

  it("have every unlisted model, and every model if they are unlisted", () => {
    for (const model of ["wan3.0-video", "happyhorse-1.1-t2v"]) {
      for (const account of [beijing, virginia, tokyo, proxy]) {
        assert.isTrue(hasModel(account, model), model)
      }
    }
    assert.isTrue(hasModel(tokyo, "wan2.5-t2v-preview"))
    assert.isTrue(hasModel(proxy, "wan2.5-t2v-preview"))
  })
})

/** docs/reference/vendors.md#dashscope-rates */
describe("limits of DashScope", () => {
  const limitsAt = (account: AccountSetting, model: string) => {
    const rate = rateOf(account)("submit", model)
    const calls = rate === undefined ? undefined : `${rate.calls} in ${rate.perMillis} ms`
    return [calls, slotsOf(account)(model)?.max]
  }

  it("depend on the model and the region", () => {
    for (const [model, account, ...limits] of [
      ["wan2.5-t2v-preview", beijing, "5 in 1000 ms", 5],
      ["wan2.5-i2v-preview", singapore, "5 in 1000 ms", 5],
      ["wan2.7-t2v-2026-06-12", singapore, "5 in 1000 ms", 5],
      ["wan2.5-t2i-preview", beijing, "5 in 1000 ms", 5],
      ["wan2.5-i2i-preview", beijing, "5 in 1000 ms", 5],
      ["wan2.6-t2i", beijing, "1 in 1000 ms", 5],
      ["wan2.6-t2i", singapore, "5 in 1000 ms", 5],
      ["wanx2.1-vace-plus", beijing, "2 in 1000 ms", 2],
      ["wan2.1-vace-plus", singapore, "2 in 1000 ms", 2],
      ["wan2.1-kf2v-plus", beijing, "2 in 1000 ms", 2],
      ["wan2.1-kf2v-plus", singapore, "1 in 1000 ms", 2],
      ["wan2.2-kf2v-flash", beijing, "2 in 1000 ms", 2],
      ["qwen-image-max", beijing, "2 in 60000 ms", undefined],
      ["qwen-image-edit-max", singapore, "2 in 60000 ms", undefined],
      ["qwen-image-plus", beijing, "2 in 1000 ms", undefined],
      ["wan3.0-video", beijing, undefined, undefined]
    ] as const) {
      assert.deepEqual(limitsAt(account, model), limits, `${model} ${regionOf(account)}`)
    }
  })

  it("are the strictest of the model if the region is not known", () => {
    assert.deepEqual(limitsAt(proxy, "wan2.1-kf2v-plus"), ["1 in 1000 ms", 2])
    assert.deepEqual(limitsAt(tokyo, "wan2.6-t2i"), ["1 in 1000 ms", 5])
  })

  it("apply to both ids of a model together", () => {
    const keys = ["wan2.1-kf2v-plus", "wanx2.1-kf2v-plus"].flatMap((model) => [
      rateOf(beijing)("submit", model)?.key,
      slotsOf(beijing)(model)?.line
    ])
    assert.deepEqual(
      [...new Set(keys)],
      ["dashscope:a/submits/wanx2.1-kf2v-plus", "dashscope:a/wanx2.1-kf2v-plus"]
    )
  })
})

describe("the account of a new job", () => {
  const named = (name: string, account: AccountSetting) => ({ ...account, id: `dashscope:${name}` })
  const us = named("us", virginia)
  const sg = named("sg", singapore)
  const job = { adapter: "dashscope-async", upstreamModel: "wan2.5-t2v-preview" }
  const vendors = LiveVendors.layer({ simulator: makeSimulator() }).pipe(
    Layer.provide(Catalog.layer),
    Layer.provideMerge(Accounts.layer([us, sg]))
  )

  it.effect("has the model, even if it is at its limit and another account is free", () =>
    Effect.gen(function* () {
      const client = yield* VendorClient
      const accounts = yield* Accounts
      const chosen = Effect.map(client.choose(job), ({ accountId }) => accountId)
      assert.strictEqual(yield* chosen, "dashscope-async@dashscope:sg")
      const source = { model: job.upstreamModel, user: null }
      const response = { status: 429, headers: { "retry-after": "60" }, body: new Uint8Array() }
      accounts.observe(sg, source, response, yield* Clock.currentTimeMillis)
      assert.strictEqual(yield* chosen, "dashscope-async@dashscope:sg")
      const anywhere = yield* client.choose({ ...job, upstreamModel: "wan2.6-t2v" })
      assert.include(
        ["dashscope-async@dashscope:us", "dashscope-async@dashscope:sg"],
        anywhere.accountId
      )
    }).pipe(Effect.provide(vendors))
  )

  it.effect("does not exist if no region has the model", () =>
    Effect.gen(function* () {
      const client = yield* VendorClient
      const own = { ...job, upstreamModel: "wan2.6-i2v-us" }
      assert.isTrue(client.isServed(own))
      assert.isFalse(client.isServed(job))
      assert.strictEqual((yield* Effect.flip(client.choose(job))).class, "OPERATOR")
      assert.isTrue(client.isServed({ adapter: "fal-queue", upstreamModel: "fal-ai/flux/dev" }))
    }).pipe(
      Effect.provide(
        LiveVendors.layer({ simulator: makeSimulator() }).pipe(
          Layer.provide(Catalog.layer),
          Layer.provideMerge(Accounts.layer([us]))
        )
      )
    )
  )
})
