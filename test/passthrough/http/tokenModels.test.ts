import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { shippedVendors } from "../../../src/catalog/ShippedVendors.ts"
import { builtInTokenModels } from "../../../src/catalog/TokenModels.ts"
import { gatewayOfTests, startGateway } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/catalog.md#token-prices */

interface Row {
  readonly type: "media" | "token"
  readonly path: string
  readonly source: string | null
  readonly deprecation: string | null
  readonly body_schema: Readonly<Record<string, unknown>>
  readonly vendor: string
  readonly model: string
  readonly sandbox: boolean
  readonly price: Readonly<Record<string, unknown>>
  readonly valid_from: string | null
  readonly valid_until: string | null
  readonly input_tokens_max: number
  readonly output_tokens_max: number
  readonly sunset: string | null
  readonly replacement: string | null
}

const price = (input: string) => ({ per: "million_tokens", input, output: input })

const file = join(temporaryFolder("catalog"), "catalog.json")
const limits = { outputTokensMax: 10, inputTokensMax: 20 }
writeFileSync(
  file,
  JSON.stringify({
    tokenModels: [
      {
        vendor: "openai",
        model: "gpt-4o",
        price: price("300"),
        laterPrices: [
          { from: "2027-01-01", price: price("500") },
          { from: "2026-12-01", price: price("400") }
        ],
        sunset: "2027-06-30",
        replacement: "gpt-6-luna",
        ...limits
      },
      { vendor: "nobody", model: "unreachable", price: price("1"), ...limits }
    ]
  })
)
const gateway = await gatewayOfTests({ CATALOG_FILE: file, OPENAI_API_KEY: "sk-vendor" })

const page = async (query: string) => {
  const answer = await fetch(`${gateway.origin}/manage/v1/models${query}`, {
    headers: { authorization: `Bearer ${gateway.key}` }
  })
  assert.equal(answer.status, 200)
  return (await answer.json()) as { data: ReadonlyArray<Row>; next_cursor: string | null }
}

const all: Array<Row> = []
let cursor: string | null = null
do {
  const { data, next_cursor }: Awaited<ReturnType<typeof page>> = await page(
    `?limit=7${cursor === null ? "" : `&cursor=${cursor}`}`
  )
  all.push(...data)
  cursor = next_cursor
} while (cursor !== null)
const rows = all.filter(({ type }) => type === "token")

const of = (vendor: string, model: string) =>
  rows.filter((row) => row.vendor === vendor && row.model === model)

describe("GET /manage/v1/models, token models", () => {
  it("lists every model that can be called, a row for each period of its price", () => {
    const shipped = shippedVendors.flatMap(({ models = [] }) => models)
    const periods = [...builtInTokenModels, ...shipped].reduce(
      (sum, { laterPrices = [], model }) => sum + (model === "gpt-4o" ? 3 : 1 + laterPrices.length),
      0
    )
    assert.equal(rows.length, periods)
    assert.deepEqual(of("nobody", "unreachable"), [])
    assert.isTrue(rows.every(({ sandbox, vendor }) => sandbox === (vendor !== "openai")))
  })

  it("says which models end, when, and what replaces them", () => {
    for (const [vendor, model, sunset, replacement] of [
      ["anthropic", "claude-sonnet-4-5", "2026-11-30", "claude-sonnet-5-5"],
      ["google", "gemini-2.5-pro", "2026-12-01", "gemini-3.8-flash"],
      ["google", "gemini-2.5-flash", "2026-12-01", "gemini-3.5-flash-lite"],
      ["openai", "gpt-5", "2026-12-11", "gpt-6.1-sol"],
      ["openai", "gpt-5.1", "2027-04-01", null],
      ["openai", "gpt-4o", "2027-06-30", "gpt-6-luna"],
      ["anthropic", "claude-opus-5-5", null, null]
    ] as const) {
      const [row] = of(vendor, model)
      assert.deepInclude(row, { sunset, replacement }, model)
    }
  })

  it("the catalog file replaces a model with all of its periods, in the order of their days", () => {
    const found = of("openai", "gpt-4o").map((row) => [
      row.price["input"],
      row.valid_from,
      row.valid_until
    ])
    assert.deepEqual(found, [
      ["300.00", null, "2026-12-01"],
      ["400.00", "2026-12-01", "2027-01-01"],
      ["500.00", "2027-01-01", null]
    ])
  })

  it("has every rate, also the defaults", () => {
    const [haiku] = of("anthropic", "claude-haiku-5-5")
    const rates = {
      input: "10.00",
      output: "50.00",
      cached_input: "1.00",
      cache_write: "12.50",
      cache_write_long: "20.00",
      reasoning: "50.00",
      audio_input: "10.00",
      image_output: "50.00"
    }
    assert.deepInclude(haiku?.price, rates)
    assert.deepInclude(haiku?.price["long"], { above: 100_000, input: "50.00", output: "250.00" })
    assert.deepInclude(haiku, { input_tokens_max: 1_000_000, output_tokens_max: 128_000 })
    assert.isNull(of("openai", "gpt-5.2")[0]?.price["long"])
  })
})

describe("a token model of the list", () => {
  it("has the path and the body of a call, and where its price comes from", () => {
    const [chat] = of("openai", "gpt-4o-mini")
    assert.equal(chat?.path, "/vendors/openai/v1/chat/completions")
    assert.deepInclude(chat?.body_schema, { type: "object", required: ["model"] })
    assert.match(chat?.source ?? "", /2026-11-22/u)
    const [embedding] = of("openai", "text-embedding-3-small")
    assert.equal(embedding?.path, "/vendors/openai/v1/embeddings")
    const [gemini] = of("google", "gemini-3.5-flash")
    assert.equal(gemini?.path, "/vendors/google/v1beta/models/gemini-3.5-flash:generateContent")
    assert.deepInclude(gemini, { sunset: "2026-10-08", deprecation: "2026-10-08" })
  })
})

describe("a catalog file", () => {
  it("stops the start if it contains an invalid day", async () => {
    const file = join(temporaryFolder("catalog"), "catalog.json")
    const wrong = {
      vendor: "openai",
      model: "m",
      price: price("1"),
      sunset: "2027-02-29",
      laterPrices: [{ from: "tomorrow", price: price("1") }],
      outputTokensMax: 1,
      inputTokensMax: 1
    }
    writeFileSync(file, JSON.stringify({ tokenModels: [wrong] }))
    const failure = await startGateway({ CATALOG_FILE: file }).then(
      () => "started",
      (error: unknown) => String(error)
    )
    assert.include(failure, "#/tokenModels/0/sunset: Expected a day as YYYY-MM-DD")
    assert.include(failure, "#/tokenModels/0/laterPrices/0/from: Expected a day as YYYY-MM-DD")
  })
})
