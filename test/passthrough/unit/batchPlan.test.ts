import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { batchPriceOf } from "../../../src/catalog/Price.ts"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"
import { batchLineBytesMax, batchLinesMax } from "../../../src/domain/limits/FileLimits.ts"
import { planBatch } from "../../../src/passthrough/batches/BatchPlan.ts"
import { planCall } from "../../../src/passthrough/CallPlan.ts"

const catalog = makeUpstreamCatalog()
const found = catalog.match("openai", "POST", "/v1/chat/completions")
if (found._tag !== "Open") throw new Error("the route is closed")
const { route } = found
const now = Date.parse("2026-11-26")

const shape = {
  catalog,
  route,
  body: "body",
  fixed: { method: "POST", url: "/v1/chat/completions" },
  at: "#/lines",
  customId: { test: (text: string) => text !== "" && text.length <= 256, expected: "a name" },
  modelsMax: 1,
  nowMillis: now
} as const

const bodyOf = (more: object = {}) => ({
  model: "gpt-4o-mini",
  messages: [{ role: "user", content: "Hello, world" }],
  max_tokens: 100,
  ...more
})
const lineOf = (id: string, body: object = bodyOf()) =>
  JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body })

/** Plans a file read in pieces of this length. */
const plan = (text: string, length = 1000) => {
  const bytes = Buffer.from(text)
  const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
    bytes.subarray(n * length, (n + 1) * length)
  )
  return Effect.runPromise(Effect.result(planBatch(shape, Stream.fromIterable(pieces))))
}

const faultsOf = async (text: string, length?: number) => {
  const planned = await plan(text, length)
  if (Result.isSuccess(planned)) throw new Error("nothing was refused")
  return planned.failure.errors ?? []
}

/** docs/reference/vendor-batches.md#price */
describe("the plan of a batch", () => {
  it("holds the sum of what its requests cost as calls, at the price of batches", async () => {
    const bodies = [bodyOf(), bodyOf({ max_tokens: 7 }), bodyOf({ n: 3 }), bodyOf({ stop: "x" })]
    const text = bodies.map((body, n) => lineOf(String(n), body)).join("\n")
    let expected = 0n
    for (const body of bodies) {
      const bytes = Buffer.from(JSON.stringify(body))
      const one = planCall(catalog, route, undefined, bytes, now, { inBatch: true })
      expected += Result.getOrThrow(one).hold
      const full = Result.getOrThrow(planCall(catalog, route, undefined, bytes, now)).hold
      assert.isAtMost(Number(Result.getOrThrow(one).hold - full / 2n), 1)
    }
    for (const length of [1, 13, 100_000]) {
      const planned = Result.getOrThrow(await plan(text, length))
      assert.strictEqual(planned.hold, expected)
      assert.strictEqual(planned.requests, 4)
      assert.deepStrictEqual(
        planned.models.map(({ name }) => name),
        ["gpt-4o-mini"]
      )
    }
  })

  it("holds each request of several models at the price of its own model", async () => {
    const names = ["gpt-4o-mini", "gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06"]
    let expected = 0n
    for (const model of names) {
      const bytes = Buffer.from(JSON.stringify(bodyOf({ model })))
      const one = planCall(catalog, route, undefined, bytes, now, { inBatch: true })
      expected += Result.getOrThrow(one).hold
    }
    const text = names.map((model, n) => lineOf(String(n), bodyOf({ model }))).join("\n")
    const several = { ...shape, modelsMax: 3 }
    const planned = await Effect.runPromise(planBatch(several, Stream.succeed(Buffer.from(text))))
    assert.strictEqual(planned.hold, expected)
    assert.deepStrictEqual(
      planned.models.map(({ name, model }) => [name, model.model]),
      [
        ["gpt-4o-mini", "gpt-4o-mini"],
        ["gpt-4o", "gpt-4o"],
        ["gpt-4o-2024-08-06", "gpt-4o"]
      ]
    )
    const more = `${text}\n${lineOf("4", bodyOf({ model: "gpt-4.1" }))}`
    const refused = await Effect.runPromise(
      Effect.flip(planBatch(several, Stream.succeed(Buffer.from(more))))
    )
    assert.deepStrictEqual(refused.errors, [
      {
        pointer: "#/lines/5/body/model",
        detail: "Expected one of the 3 models that earlier requests name"
      }
    ])
  })

  it("halves every rate, even for long prompts, but not the prices of tools", () => {
    for (const { kind, model, price, vendor } of catalog.tokenModels) {
      const half = batchPriceOf(price)
      const isSold = kind === undefined && (vendor === "openai" || vendor === "anthropic")
      if (!isSold || price.per !== "million_tokens") {
        assert.isUndefined(half, model)
        continue
      }
      assert.strictEqual((half?.input ?? 0n) * 2n, price.input)
      assert.strictEqual((half?.output ?? 0n) * 2n, price.output)
      assert.strictEqual((half?.cachedInput ?? 0n) * 2n, price.cachedInput ?? 0n)
      assert.strictEqual((half?.long?.input ?? 0n) * 2n, price.long?.input ?? 0n)
      assert.strictEqual(half?.long?.above, price.long?.above)
      assert.deepStrictEqual(half?.tools, price.tools)
    }
  })

  it("reads the text of each request as it is written", async () => {
    const spaced = `{ "body" : ${JSON.stringify(bodyOf(), null, 1).replaceAll("\n", " ")},\t"url": "/v1/chat/completions", "method":"POST", "custom_id": "a\\u0062" }`
    const planned = Result.getOrThrow(await plan(`\r\n${spaced}\r\n\r\n`))
    assert.strictEqual(planned.requests, 1)
  })

  it.each([
    ["text that is not JSON", "{", "#/lines/1"],
    ["JSON that is not an object", "[]", "#/lines/1"],
    [
      "a repeated key",
      lineOf("a").replace('"max_tokens"', '"model":"gpt-4o","max_tokens"'),
      "#/lines/1"
    ],
    ["an unknown member", `{"x":1,${lineOf("a").slice(1)}`, "#/lines/1/x"],
    ["a long name", lineOf("a".repeat(257)), "#/lines/1/custom_id"],
    ["a repeated name", `${lineOf("a")}\n${lineOf("a")}`, "#/lines/2/custom_id"],
    [
      "another model",
      `${lineOf("a")}\n${lineOf("b", bodyOf({ model: "gpt-4o" }))}`,
      "#/lines/2/body/model"
    ],
    ["a fallback", lineOf("a", bodyOf({ fallbacks: [] })), "#/lines/1/body/fallbacks"],
    ["the background", lineOf("a", bodyOf({ background: true })), "#/lines/1/body/background"],
    ["a stream", lineOf("a", bodyOf({ stream: true })), "#/lines/1/body/stream"],
    [
      "a line that is too long",
      lineOf("a", bodyOf({ x: "y".repeat(batchLineBytesMax) })),
      "#/lines/1"
    ],
    ["a file without requests", "\n\n", "#/lines"]
  ])("refuses %s", async (_what, text, pointer) => {
    const faults = await faultsOf(text, 65_536)
    assert.deepStrictEqual(
      faults.map((fault) => fault.pointer),
      [pointer]
    )
  })

  it("refuses a model that is not sold in batches by its name", async () => {
    const [fault] = await faultsOf(lineOf("a", bodyOf({ model: "gemini-2.5-pro" })))
    assert.strictEqual(fault?.pointer, "#/lines/1/body/model")
    const without = makeUpstreamCatalog({
      providers: [],
      routes: catalog.routes,
      tokenModels: catalog.tokenModels.map((model) => {
        if (model.price.per !== "million_tokens") return model
        const { batch: _, ...price } = model.price
        return Object.assign({}, model, { price })
      })
    })
    const planned = await Effect.runPromise(
      Effect.result(
        planBatch({ ...shape, catalog: without }, Stream.succeed(Buffer.from(lineOf("a"))))
      )
    )
    if (Result.isSuccess(planned)) throw new Error("it is sold")
    assert.strictEqual(planned.failure.errors?.[0]?.detail, "gpt-4o-mini is not offered in batches")
  })

  it("stops at the maximum number of faults, requests or lines", async () => {
    const many = Array.from({ length: 300 }, (_, n) => lineOf(String(n), bodyOf({ n: 0 })))
    assert.lengthOf(await faultsOf(many.join("\n")), 100)
    const [lines] = await faultsOf("\n".repeat(2 * batchLinesMax + 10), 65_536)
    assert.match(lines?.detail ?? "", /at most 100000 requests/u)
  })
})
