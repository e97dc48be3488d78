import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { bodies, jsonSchemaOf, Label } from "../../../src/catalog/bodies/Bodies.ts"
import { decodeBody } from "../../../src/catalog/bodies/Decode.ts"
import { acceptBody } from "../../../src/catalog/media/Media.ts"
import { anyText } from "../../support/anyText.ts"
import { bodyWith, leastBodies } from "../../support/bodies.ts"

const labels = Label.literals

describe("decodeBody", () => {
  it.effect("fills in all defaults", () =>
    Effect.map(decodeBody("image-edit", leastBodies["image-edit"]), (body) =>
      assert.deepStrictEqual(body, {
        prompt: "a",
        images: ["https://example.com/picture.png"],
        size: "1280*1280",
        n: 4,
        prompt_extend: false,
        safety_filter: true
      })
    )
  )
  it.effect("accepts its own result again", () =>
    Effect.forEach(labels, (label) =>
      Effect.gen(function* () {
        const body = yield* decodeBody(label, leastBodies[label])
        assert.deepStrictEqual(yield* decodeBody(label, body), body)
      })
    )
  )
  it.effect("never echoes a large value or name, nor thousands of faults", () =>
    Effect.gen(function* () {
      const large = "x".repeat(5_000_000)
      const crowd = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [index, 1]))
      const inputs = [
        bodyWith("image-edit", { size: large, [large]: 1, n: large }),
        { prompt: "😀".repeat(600_000), images: [large], negative_prompt: large },
        crowd,
        { prompt: "a", images: Array.from({ length: 100_000 }, () => 1) }
      ]
      for (const input of inputs) {
        const error = yield* Effect.flip(acceptBody("image-edit", input))
        assert.isBelow(JSON.stringify(error.errors).length, 1000)
      }
    })
  )
  it.effect("treats __proto__ and constructor as ordinary names", () =>
    Effect.gen(function* () {
      const input: unknown = JSON.parse('{"__proto__": {"prompt": "a"}, "constructor": 1}')
      const error = yield* Effect.flip(acceptBody("text-to-image-max", input))
      assert.sameMembers(
        error.errors.map(({ pointer }) => pointer),
        ["#/__proto__", "#/constructor", "#/prompt"]
      )
    })
  )
})

/** Any JSON, including the bodies' own field names and valid bodies with another field or value. */
const anyBody = (label: Label) => {
  const fields = Object.keys(bodies[label].fields)
  const value = fc.oneof(
    fc.jsonValue(),
    anyText,
    fc.constantFrom(
      "data:image/png;base64,AAAA",
      "https://a.b/c",
      "://",
      "data:,",
      "a//",
      "artifact:art_0",
      5,
      -0,
      1e308,
      Infinity
    )
  )
  return fc.oneof(
    fc.jsonValue(),
    fc.dictionary(fc.constantFrom(...fields), fc.oneof(value, fc.array(value, { maxLength: 12 }))),
    fc
      .tuple(fc.oneof(fc.constantFrom(...fields), fc.string()), value)
      .map(([name, other]) => bodyWith(label, { [name]: other }))
  )
}

describe("any JSON", () => {
  for (const label of labels) {
    it(`${label}: is decoded or refused with pointers, never a defect`, () =>
      fc.assert(
        fc.asyncProperty(anyBody(label), async (input) => {
          const result = await Effect.runPromise(Effect.result(acceptBody(label, input)))
          if (result._tag === "Success") {
            assert.isTrue(Schema.is(bodies[label])(result.success.body))
            return
          }
          assert.isNotEmpty(result.failure.errors)
          for (const { detail, pointer } of result.failure.errors) {
            assert.match(pointer, /^#(\/[^/]*)*$/u)
            assert.isNotEmpty(detail)
            assert.isBelow(detail.length, 400)
          }
        }),
        { numRuns: 200 }
      ))
  }
})

describe("jsonSchemaOf", () => {
  it("shows defaults, enums, limits and that no other field is allowed", () => {
    const schema = JSON.parse(JSON.stringify(jsonSchemaOf("image-edit")))
    assert.deepStrictEqual(schema.required, ["prompt", "images"])
    assert.isFalse(schema.additionalProperties)
    assert.strictEqual(schema.properties.prompt.maxLength, 2000)
    assert.strictEqual(schema.properties.images.maxItems, 3)
    assert.strictEqual(schema.properties.size.default, "1280*1280")
    assert.include(schema.properties.n, { type: "integer", minimum: 1, maximum: 4, default: 4 })
    assert.include(schema.properties.seed, { type: "integer", minimum: 0, maximum: 2147483647 })
    assert.strictEqual(schema.properties.prompt_extend.default, false)
    assert.strictEqual(schema.properties.safety_filter.default, true)
  })
  it("is a plain object schema for each label", () => {
    for (const label of labels) {
      const schema = JSON.parse(JSON.stringify(jsonSchemaOf(label)))
      assert.strictEqual(schema.type, "object")
      assert.notInclude(JSON.stringify(schema), "$ref")
      assert.sameMembers(Object.keys(schema.properties), Object.keys(bodies[label].fields))
    }
  })
  it("names every enum", () => {
    const schema = JSON.parse(JSON.stringify(jsonSchemaOf("image-edit-pro")))
    assert.strictEqual(schema.properties.aspect_ratio.enum.length, 10)
    assert.deepStrictEqual(schema.properties.resolution.enum, ["1K", "2K"])
    assert.strictEqual(schema.properties.images.maxItems, 10)
  })
})
