import { assert, describe, it } from "@effect/vitest"
import { Option, Result } from "effect"
import { createHash } from "node:crypto"
import { hashed, makeVersion, readStored } from "../../../src/catalog/CatalogContent.ts"
import { differenceOf } from "../../../src/catalog/CatalogDifference.ts"
import { builtIn } from "../../../src/catalog/CatalogSource.ts"
import type { TokenModel } from "../../../src/catalog/OpenRoutes.ts"
import { make } from "../../../src/domain/Credits.ts"

const sold: TokenModel = {
  vendor: "openai",
  model: "tiny",
  price: { per: "million_tokens", input: make(1n), output: make(37_500n) },
  outputTokensMax: 10,
  inputTokensMax: 10
}

const withModels = (...tokenModels: ReadonlyArray<TokenModel>) => ({
  ...builtIn.content,
  tokenModels
})

describe("the text of a catalog", () => {
  it("is the same whatever the order of the members in its rows", () => {
    const turned = Object.fromEntries(Object.entries(sold).toReversed()) as unknown as TokenModel
    assert.strictEqual(hashed(withModels(turned)).hash, hashed(withModels(sold)).hash)
    assert.match(builtIn.hash, /^[0-9a-f]{64}$/u)
  })

  it("keeps every micro-credit when it is read again", () => {
    const { content, hash, text } = hashed(withModels(sold))
    const again = Result.getOrThrow(readStored(hash, text))
    assert.deepStrictEqual(again.content, content)
    assert.include(text, '"input":"0.000001"')
    assert.include(text, '"output":"0.0375"')
  })

  it("sells what it lists, and nothing else that the reading release has built in", () => {
    const { hash, text } = hashed(withModels(sold))
    const { id, upstream } = makeVersion(Result.getOrThrow(readStored(hash, text)), 7)
    assert.strictEqual(id, 7)
    assert.isDefined(upstream.priced("openai", "tiny"))
    assert.isUndefined(upstream.priced("openai", "gpt-4o"))
    const match = upstream.match("openai", "POST", "/v1/chat/completions")
    assert.strictEqual(match._tag === "Open" ? match.catalog : undefined, upstream)
  })

  it("is refused if it does not match its hash or is unknown to this release", () => {
    const { hash, text } = builtIn
    assert.isTrue(Result.isFailure(readStored(hash, text.replace("7.50", "0.50"))))
    const strange = text.replaceAll("dashscope-sync", "an-adapter-of-tomorrow")
    const strangeHash = createHash("sha256").update(strange).digest("hex")
    assert.deepStrictEqual(
      readStored(strangeHash, strange),
      Result.fail("it has models or prices that this release does not know")
    )
  })

  it("finds the built-in models", () => {
    const { find } = makeVersion(builtIn, null)
    assert.isTrue(Option.isSome(find("alibaba", "text-to-image-max", "generation")))
  })
})

describe("the difference of two catalogs", () => {
  it("is empty for the same catalog", () => {
    const none = { added: [], removed: [], changed: [] }
    assert.deepStrictEqual(differenceOf(builtIn.content, builtIn.content), none)
  })

  it("names added and removed rows, and each changed value", () => {
    const before = withModels(sold, { ...sold, model: "going" })
    const price = { ...sold.price, input: make(2n) }
    const after = {
      ...withModels({ ...sold, price, sunset: "2027-01-01" }, { ...sold, model: "coming" }),
      models: builtIn.content.models.slice(1)
    }
    const token = { type: "token" }
    assert.deepStrictEqual(differenceOf(before, after), {
      added: [{ ...token, id: "openai/coming" }],
      removed: [
        { type: "media", id: "service/v1/text-to-video-spark/generation" },
        { ...token, id: "openai/going" }
      ],
      changed: [
        {
          ...token,
          id: "openai/tiny",
          changes: [
            { pointer: "#/price/input", before: "0.000001", after: "0.000002" },
            { pointer: "#/sunset", before: null, after: "2027-01-01" }
          ]
        }
      ]
    } as unknown as ReturnType<typeof differenceOf>)
  })
})
