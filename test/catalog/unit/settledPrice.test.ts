import { assert, describe, it } from "@effect/vitest"
import { Context, Metric } from "effect"
import type { TokenModel } from "../../../src/catalog/OpenRoutes.ts"
import { settledPrice } from "../../../src/catalog/SettledPrice.ts"
import { makeUpstreamCatalog, withBuiltIn } from "../../../src/catalog/UpstreamCatalog.ts"
import { make } from "../../../src/domain/Credits.ts"

const row = (model: string, input: bigint, more: Partial<TokenModel> = {}): TokenModel => ({
  vendor: "openai",
  model,
  price: { per: "million_tokens", input: make(input), output: make(0n) },
  outputTokensMax: 10,
  inputTokensMax: 10,
  ...more
})

const catalog = makeUpstreamCatalog(
  withBuiltIn({
    tokenModels: [
      row("big", 100n),
      row("big-2026-01-31", 90n),
      row("small", 10n, {
        laterPrices: [
          {
            from: "2026-12-01",
            price: { per: "million_tokens", input: make(20n), output: make(0n) }
          }
        ]
      })
    ]
  })
)

const settle = (
  requested: string,
  responder: string | undefined,
  { day = "2026-11-22", fallback }: { readonly day?: string; readonly fallback?: string } = {}
) => {
  const model = catalog.priced("openai", requested)!
  const nowMillis = Date.parse(day)
  const fallbacks =
    fallback === undefined
      ? []
      : [
          {
            model: catalog.priced("openai", fallback)!,
            price: row("", 0n).price,
            maxTokens: undefined
          }
        ]
  const metered = {
    _tag: "Tokens",
    protocol: "openai-chat",
    model,
    usage: undefined,
    mayReason: false,
    fallbacks,
    catalog,
    nowMillis
  } as const
  const found = settledPrice({ ...metered, price: model.price }, requested, responder)
  return [found.price.per === "million_tokens" ? Number(found.price.input) : NaN, found.pricedAs]
}

const counted = (model: string): number => {
  const found = Metric.snapshotUnsafe(Context.empty()).find(
    ({ attributes, id }) =>
      id === "gateway_other_model_responses_total" && attributes?.["model"] === model
  )
  return found?.type === "Counter" ? Number(found.state.count) : 0
}

describe("the price that a call is settled at", () => {
  it("is the requested model's if that model responded or none was named", () => {
    const before = counted("big")
    assert.deepStrictEqual(settle("big", "big"), [100, undefined])
    assert.deepStrictEqual(settle("big", undefined), [100, undefined])
    // A version without its own price has the price of its model
    assert.deepStrictEqual(settle("big", "big-2026-06-30"), [100, undefined])
    assert.strictEqual(counted("big"), before)
  })

  it("is the responding model's if it has a price and the request pinned no version", () => {
    const before = counted("big")
    assert.deepStrictEqual(settle("big", "small"), [10, "small"])
    assert.deepStrictEqual(settle("small", "big"), [100, "big"])
    assert.deepStrictEqual(settle("big", "big-2026-01-31"), [90, "big-2026-01-31"])
    assert.deepStrictEqual(settle("big-latest", "small"), [10, "small"])
    assert.deepStrictEqual(settle("big", "small", { day: "2026-12-01" }), [20, "small"])
    assert.strictEqual(counted("big"), before)
  })

  it("is the requested model's, and counted, if the responding model has no price", () => {
    const before = counted("big")
    assert.deepStrictEqual(settle("big", "unheard-of"), [100, undefined])
    // No longer sold, although its model is
    assert.deepStrictEqual(settle("big", "gpt-4o-2024-05-13"), [100, undefined])
    assert.strictEqual(counted("big"), before + 2)
  })

  it("is the requested model's, and counted, if the request pinned a version", () => {
    const before = counted("big-2026-01-31")
    assert.deepStrictEqual(settle("big-2026-01-31", "small"), [90, undefined])
    assert.strictEqual(counted("big-2026-01-31"), before + 1)
  })

  it("is the responding model's if a pinned version named it as a fallback", () => {
    const pinned = "big-2026-01-31"
    const before = counted(pinned)
    assert.deepStrictEqual(settle(pinned, "small", { fallback: "small" }), [10, "small"])
    assert.strictEqual(counted(pinned), before)
    assert.deepStrictEqual(settle(pinned, "big", { fallback: "small" }), [90, undefined])
  })
})

describe("models without a price", () => {
  it("include versions that are not sold, even if their model is", () => {
    assert.isDefined(catalog.priced("openai", "gpt-4o-2024-08-06"))
    assert.isUndefined(catalog.priced("openai", "gpt-4o-2024-05-13"))
  })

  it("have a reason, and so do their versions; other models have none", () => {
    assert.include(catalog.unsold("openai", "o4-mini"), "2026-10-23")
    assert.include(catalog.unsold("openai", "o4-mini-2025-04-16"), "2026-10-23")
    assert.isUndefined(catalog.unsold("openai", "gpt-4o"))
    assert.isUndefined(catalog.unsold("openai", "my-fine-tune"))
    assert.isUndefined(catalog.unsold("anthropic", "o4-mini"))
  })

  it("are sold once the catalog file gives them a price", () => {
    const own = makeUpstreamCatalog(withBuiltIn({ tokenModels: [row("o4-mini", 5n)] }))
    assert.strictEqual(own.priced("openai", "o4-mini-2025-04-16")?.model, "o4-mini")
    assert.isUndefined(own.unsold("openai", "o4-mini"))
  })
})
