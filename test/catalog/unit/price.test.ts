import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as fc from "fast-check"
import type { Label } from "../../../src/catalog/bodies/Bodies.ts"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import { chargeUnits } from "../../../src/catalog/ModelPrice.ts"
import type { UnitPrice } from "../../../src/catalog/ModelPrice.ts"
import {
  chargeHeld,
  chargeTokens,
  holdTokens,
  PriceRule,
  quote as quoted,
  requestedOf
} from "../../../src/catalog/Price.ts"
import type { TokenPrice } from "../../../src/catalog/Price.ts"
import { priceAt } from "../../../src/catalog/PriceRow.ts"
import { builtInTokenModels } from "../../../src/catalog/TokenModels.ts"
import { mergeUsage, responderOf, usageOf } from "../../../src/catalog/Usage.ts"
import { format, make } from "../../../src/domain/Credits.ts"
import { accept } from "../../support/bodies.ts"

const quote = (...of: Parameters<typeof quoted>) => Result.getOrThrow(quoted(...of))

const entryOf = (label: Label) => builtInEntries.find((entry) => entry.label === label)!

const quoteOf = (label: Label, fields: Record<string, unknown> = {}) =>
  Effect.map(accept(label, fields), ({ body }) => format(quote(entryOf(label), body)))

describe("quote", () => {
  it.effect("text-to-image-max costs 7.50 credits an image, which is 0.075 US dollars", () =>
    Effect.map(quoteOf("text-to-image-max"), (amount) => assert.strictEqual(amount, "7.50"))
  )
  it("is never more than an amount that no wallet can hold", () => {
    const price = { per: "second", amount: make(9_000_000_000_000_000_000n) } as const
    for (const duration of [1, 10, 1_000_000]) {
      const amount = quote({ price }, { duration })
      assert.isTrue(amount >= price.amount && amount < 2n ** 63n, String(amount))
    }
  })
  it.effect("n multiplies the price of an image, the default n too", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* quoteOf("image-edit"), "12.00")
      assert.strictEqual(yield* quoteOf("image-edit", { n: 1 }), "3.00")
      assert.strictEqual(yield* quoteOf("text-to-image-preview", { n: 3 }), "9.00")
      assert.strictEqual(yield* quoteOf("image-edit-max"), "7.50")
      assert.strictEqual(yield* quoteOf("image-edit-max", { n: 6 }), "45.00")
      assert.strictEqual(yield* quoteOf("image-edit-pro"), "13.40")
    })
  )
  it.effect("seconds count by tier; absent means 5", () =>
    Effect.gen(function* () {
      const label = "text-to-video-spark"
      assert.strictEqual(yield* quoteOf(label), "50.00")
      assert.strictEqual(yield* quoteOf(label, { duration: 10 }), "100.00")
      for (const size of ["1920*1080", "1080*1920", "1440*1440", "1632*1248", "1248*1632"]) {
        assert.strictEqual(yield* quoteOf(label, { size }), "75.00")
      }
      for (const size of ["1280*720", "720*1280", "960*960", "1088*832", "832*1088"]) {
        assert.strictEqual(yield* quoteOf(label, { size, duration: 5 }), "50.00")
      }
      assert.strictEqual(yield* quoteOf("image-to-video-spark", { resolution: "480P" }), "25.00")
      assert.strictEqual(yield* quoteOf("image-to-video-spark", { resolution: "1080P" }), "75.00")
      assert.strictEqual(yield* quoteOf("keyframe-to-video-plus"), "50.00")
      assert.strictEqual(yield* quoteOf("video-edit-plus"), "50.00")
    })
  )
})

describe("chargeHeld", () => {
  it.effect("counts the results; no results cost nothing", () =>
    Effect.gen(function* () {
      const { body } = yield* accept("image-edit")
      const held = quote(entryOf("image-edit"), body)
      const of = (produced: number) => format(chargeHeld(held, requestedOf(body), produced))
      assert.deepStrictEqual([0, 1, 3, 4, 9].map(of), ["0.00", "3.00", "9.00", "12.00", "12.00"])
    })
  )
  it("rounds a part of the hold up to a micro-credit", () => {
    assert.deepStrictEqual(
      [1, 2, 3].map((produced) => chargeHeld(make(100n), 3, produced)),
      [make(34n), make(67n), make(100n)]
    )
  })

  const amount = fc.bigInt({ min: 0n, max: 10n ** 12n }).map(make)
  const rule: fc.Arbitrary<PriceRule> = fc.oneof(
    fc.record({ per: fc.constant("image" as const), amount }),
    fc.record({ per: fc.constant("call" as const), amount }),
    fc.record({
      per: fc.constant("second" as const),
      amount,
      tiers: fc.record({ "480P": amount, "720P": amount, "1080P": amount }, { requiredKeys: [] })
    })
  )
  const body = fc.record(
    {
      n: fc.integer({ min: 1, max: 10 }),
      duration: fc.constantFrom(5, 10),
      size: fc.constantFrom("1280*720", "1920*1080", null),
      resolution: fc.constantFrom("480P", "720P", "1080P", "2K")
    },
    { requiredKeys: [] }
  )
  it("is never negative, never above the quote, and grows with the number of results", () =>
    fc.assert(
      fc.property(rule, body, fc.nat({ max: 20 }), (price, asked, produced) => {
        const held = quote({ price }, asked)
        const settled = chargeHeld(held, requestedOf(asked), produced)
        assert.isTrue(settled >= 0n && settled <= held)
        assert.isTrue(settled <= chargeHeld(held, requestedOf(asked), produced + 1))
        assert.strictEqual(chargeHeld(held, requestedOf(asked), asked.n ?? 1), held)
      })
    ))
})

describe("chargeTokens", () => {
  it("counts a million tokens in and out, rounded up", () => {
    const price = { per: "million_tokens", input: make(200_000_000n), output: make(1n) } as const
    const of = (inputTokens: number, outputTokens: number) =>
      chargeTokens(price, { inputTokens, outputTokens })
    assert.strictEqual(of(1_000_000, 0), make(200_000_000n))
    assert.strictEqual(of(0, 1), make(1n))
    assert.strictEqual(of(0, 0), make(0n))
    assert.strictEqual(of(1, 1), make(201n))
  })
})

describe("chargeUnits", () => {
  it("rounds a part of a unit up to a micro-credit, and counts each millisecond", () => {
    const of = (per: UnitPrice["per"], count: number) =>
      chargeUnits({ per, amount: make(100n) }, count)
    assert.deepStrictEqual(
      [0, 1, 10_001, 1_000_000].map((it) => of("million_characters", it)),
      [make(0n), make(1n), make(2n), make(100n)]
    )
    assert.deepStrictEqual(
      [0, 0.6, 0.601, 60].map((it) => of("minute", it)),
      [make(0n), make(1n), make(2n), make(100n)]
    )
    assert.strictEqual(of("search", 3), make(300n))
  })
})

describe("token prices", () => {
  const rates = (input: bigint, output: bigint) => ({
    input: make(input),
    output: make(output),
    cachedInput: make(input / 10n),
    cacheWrite: make(input + 25n),
    cacheWriteLong: make(input * 2n),
    reasoning: make(output * 3n),
    audioInput: make(input * 4n),
    imageOutput: make(output * 5n)
  })
  const price = {
    per: "million_tokens",
    ...rates(100n, 1000n),
    long: { above: 5_000_000, ...rates(200n, 1500n) }
  } as const
  const million = 1_000_000
  const usage = {
    inputTokens: 4 * million,
    cachedInputTokens: million,
    cacheWriteTokens: 2 * million,
    cacheWriteLongTokens: million,
    outputTokens: 2 * million,
    reasoningTokens: million
  }

  it("each kind of token has its own price", () => {
    // plain 100, cached 10, written 125, written for long 200, output 1000, reasoning 3000
    assert.strictEqual(chargeTokens(price, usage), make(100n + 10n + 125n + 200n + 1000n + 3000n))
  })

  it("sound in the prompt and pictures in the answer have their own prices", () => {
    const found = chargeTokens(price, {
      inputTokens: 4 * million,
      cachedInputTokens: million,
      audioInputTokens: 2 * million,
      outputTokens: 3 * million,
      reasoningTokens: million,
      imageOutputTokens: million
    })
    // plain 100, cached 10, sound 2 * 400, output 1000, pictures 5000, reasoning 3000
    assert.strictEqual(found, make(100n + 10n + 800n + 1000n + 5000n + 3000n))
  })

  it("a long prompt raises the price of all tokens of its call", () => {
    const of = (inputTokens: number) => chargeTokens(price, { inputTokens, outputTokens: million })
    assert.strictEqual(of(5 * million), make(5n * 100n + 1000n))
    assert.strictEqual(of(5 * million + 1), make(5n * 200n + 1500n + 1n))
    // What a compaction read is not part of the prompt
    const compacted = (inputTokens: number, compactedTokens: number) =>
      chargeTokens(price, { inputTokens, compactedTokens, outputTokens: 0 })
    assert.strictEqual(compacted(8 * million, 4 * million), make(8n * 100n))
    assert.strictEqual(compacted(8 * million, 6 * million), make(8n * 200n))
  })

  it("the hold covers every possible usage, whatever kind of token costs most", () =>
    fc.assert(
      fc.property(
        fc.array(fc.nat(8 * million), { minLength: 6, maxLength: 6 }),
        fc.array(fc.nat(8 * million), { minLength: 2, maxLength: 2 }),
        fc.boolean(),
        fc.constantFrom("cacheWrite", "cacheWriteLong", "reasoning", "audioInput", "imageOutput"),
        (
          [input = 0, cached = 0, write = 0, long = 0, output = 0, reasoning = 0],
          [audio = 0, image = 0],
          keeps,
          mostExpensive
        ) => {
          const expensive = { [mostExpensive]: make(9000n) }
          const rated = { ...price, ...expensive, long: { ...price.long, ...expensive } }
          const found = chargeTokens(rated, {
            inputTokens: input,
            cachedInputTokens: cached,
            cacheWriteTokens: write,
            cacheWriteLongTokens: keeps ? long : 0,
            outputTokens: output,
            reasoningTokens: reasoning,
            audioInputTokens: audio,
            imageOutputTokens: image
          })
          assert.isTrue(found <= holdTokens(rated, input, output, keeps))
        }
      )
    ))

  it("built-in prices are never lower for a long prompt, nor higher for cached tokens", () => {
    for (const { model, price: it } of builtInTokenModels) {
      if (it.per !== "million_tokens") continue
      assert.isTrue((it.cachedInput ?? it.input) <= it.input, model)
      assert.isTrue(it.input <= (it.cacheWrite ?? it.input), model)
      if (it.long !== undefined)
        assert.isTrue(it.long.input >= it.input && it.long.output >= it.output, model)
    }
  })

  it("a later price begins at 00:00 UTC of its day, whatever the order of the list", () => {
    const later = (from: string, input: bigint) => ({
      from,
      price: { per: "million_tokens", input: make(input), output: make(0n) } as const
    })
    const model = {
      vendor: "v",
      model: "m",
      price: { per: "million_tokens", input: make(1n), output: make(0n) },
      laterPrices: [later("2027-01-01", 3n), later("2026-12-01", 2n)],
      outputTokensMax: 1,
      inputTokensMax: 1
    } as const
    const at = (time: string) => priceAt<TokenPrice>(model, Date.parse(time))?.input
    assert.strictEqual(at("2026-11-30T23:59:59.999Z"), make(1n))
    assert.strictEqual(at("2026-12-01T00:00:00Z"), make(2n))
    assert.strictEqual(at("2026-12-31T23:59:59.999Z"), make(2n))
    assert.strictEqual(at("2027-01-01T00:00:00Z"), make(3n))
  })

  it("the launch prices of Gemini double on the days that Google named", () => {
    const input = (name: string, day: string) => {
      const price = priceAt(
        builtInTokenModels.find(({ model }) => model === name)!,
        Date.parse(day)
      )
      return price?.per === "million_tokens" ? price.input : undefined
    }
    for (const name of ["gemini-4-argon", "gemini-4-carbon"]) {
      assert.strictEqual(input(name, "2026-11-22"), make(200_000_000n))
      assert.strictEqual(input(name, "2026-12-01"), make(400_000_000n))
    }
    assert.strictEqual(input("gemini-3.8-flash", "2026-12-31"), make(75_000_000n))
    assert.strictEqual(input("gemini-3.8-flash", "2027-01-01"), make(150_000_000n))
  })
})

describe("the usage in a response", () => {
  it("has the tokens written to the cache, and for how long", () => {
    const details = {
      cached_tokens: 1,
      cache_write_tokens: 5,
      cache_write_tokens_details: { ttl_12h_tokens: 2, ttl_30m_tokens: 3 }
    }
    const parts = { cachedInputTokens: 1, cacheWriteTokens: 5, cacheWriteLongTokens: 2 }
    const chat = usageOf("openai-chat", { usage: { prompt_tokens_details: details } })
    assert.deepInclude(chat, parts)
    const responses = usageOf("openai-responses", { usage: { input_tokens_details: details } })
    assert.deepInclude(responses, parts)
    const messages = usageOf("anthropic-messages", {
      usage: {
        input_tokens: 4,
        cache_read_input_tokens: 1,
        cache_creation_input_tokens: 5,
        cache_creation: { ephemeral_1h_input_tokens: 2, ephemeral_5m_input_tokens: 3 },
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 7 }
      }
    })
    assert.deepEqual(messages, { ...parts, inputTokens: 10, outputTokens: 9, reasoningTokens: 7 })
  })

  it("includes Anthropic's compactions, which its totals leave out", () => {
    const compaction = {
      type: "compaction",
      input_tokens: 100,
      cache_read_input_tokens: 80_000,
      cache_creation_input_tokens: 20,
      cache_creation: { ephemeral_1h_input_tokens: 5 },
      output_tokens: 3500
    }
    const message = { type: "message", input_tokens: 23_000, output_tokens: 1000 }
    const usage = {
      input_tokens: 23_000,
      output_tokens: 1000,
      iterations: [compaction, compaction, message]
    }
    const found = {
      inputTokens: 23_000 + 2 * 80_120,
      outputTokens: 8000,
      cachedInputTokens: 160_000,
      cacheWriteTokens: 40,
      cacheWriteLongTokens: 10,
      reasoningTokens: 0,
      compactedTokens: 2 * 80_120
    }
    assert.deepEqual(usageOf("anthropic-messages", { usage }), found)
    const start = usageOf("anthropic-messages", {
      message: { usage: { input_tokens: 23_000, output_tokens: 1 } }
    })
    assert.deepEqual(mergeUsage(start, found), found)
    const wrong = { ...usage, iterations: [{ ...compaction, input_tokens: -1 }] }
    assert.isNaN(usageOf("anthropic-messages", { usage: wrong })!.inputTokens)
  })
})

describe("Gemini's usage by modality", () => {
  const text = { modality: "TEXT", tokenCount: 100 }
  const usageMetadata = {
    promptTokenCount: 400,
    promptTokensDetails: [text, { modality: "AUDIO", tokenCount: 300 }],
    cachedContentTokenCount: 120,
    cacheTokensDetails: [{ modality: "AUDIO", tokenCount: 120 }],
    candidatesTokenCount: 1300,
    candidatesTokensDetails: [text, { modality: "IMAGE", tokenCount: 1200 }],
    thoughtsTokenCount: 50
  }

  it("has the sound that was not cached, and the pictures", () => {
    const usage = usageOf("gemini-generate", { usageMetadata })
    assert.deepEqual(usage, {
      inputTokens: 400,
      outputTokens: 1350,
      cachedInputTokens: 120,
      reasoningTokens: 50,
      audioInputTokens: 180,
      imageOutputTokens: 1200
    })
    const first = usageOf("gemini-generate", { usageMetadata: { promptTokenCount: 400 } })
    assert.deepInclude(mergeUsage(first, usage!), { audioInputTokens: 180 })
  })

  it("may name the modalities by their numbers", () => {
    const numbers = { TEXT: 1, IMAGE: 2, AUDIO: 4 }
    const encoded = JSON.stringify(usageMetadata).replaceAll(
      /"(TEXT|IMAGE|AUDIO)"/gu,
      (_, name: keyof typeof numbers) => `${numbers[name]}`
    )
    assert.deepEqual(
      usageOf("gemini-generate", { usageMetadata: JSON.parse(encoded) }),
      usageOf("gemini-generate", { usageMetadata })
    )
  })

  it("has no such members for text alone", () => {
    const usage = usageOf("gemini-generate", {
      usageMetadata: { promptTokenCount: 100, promptTokensDetails: [text] }
    })
    assert.doesNotHaveAnyKeys(usage, ["audioInputTokens", "imageOutputTokens"])
  })
})

describe("the model that a response names", () => {
  it("is read where each protocol puts it", () => {
    assert.strictEqual(responderOf("openai-chat", { model: "a" }), "a")
    assert.strictEqual(responderOf("openai-embeddings", { model: "a" }), "a")
    assert.strictEqual(responderOf("openai-responses", { model: "a" }), "a")
    assert.strictEqual(responderOf("openai-responses", { response: { model: "a" } }), "a")
    assert.strictEqual(responderOf("anthropic-messages", { model: "a" }), "a")
    assert.strictEqual(responderOf("anthropic-messages", { message: { model: "a" } }), "a")
    assert.strictEqual(responderOf("gemini-generate", { modelVersion: "a" }), "a")
    assert.strictEqual(responderOf("gemini-generate", [{ modelVersion: "a" }, {}]), "a")
    assert.isUndefined(responderOf("openai-chat", { model: 7 }))
    assert.isUndefined(responderOf("openai-chat", "no object"))
  })

  it("is the fallback that responded if Anthropic reports one", () => {
    const iterations = [
      { type: "message", input_tokens: 1 },
      { type: "fallback_message", model: "b", input_tokens: 1 }
    ]
    assert.strictEqual(
      responderOf("anthropic-messages", { model: "a", usage: { iterations } }),
      "b"
    )
    assert.strictEqual(responderOf("anthropic-messages", { usage: { iterations } }), "b")
    const none = { model: "a", usage: { iterations: null } }
    assert.strictEqual(responderOf("anthropic-messages", none), "a")
  })
})

describe("PriceRule", () => {
  it.effect("reads decimal strings and refuses negative amounts", () =>
    Effect.gen(function* () {
      const read = Schema.decodeUnknownEffect(PriceRule)
      assert.deepStrictEqual(yield* read({ per: "image", amount: "7.5" }), {
        per: "image",
        amount: make(7_500_000n)
      })
      for (const amount of ["-1.00", "1,5", "", 7])
        yield* Effect.flip(read({ per: "call", amount }))
    })
  )
})
