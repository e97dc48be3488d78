import { assert, describe, it } from "@effect/vitest"
import { patternExample } from "../../../src/sandbox/PatternExample.ts"
import { exampleOf, UnsatisfiableSchema } from "../../../src/sandbox/SchemaExample.ts"
import { cpuMillis } from "../../support/cpuTime.ts"

describe("exampleOf", () => {
  it("has the required members in their order, or all members if none are required", () => {
    const properties = { a: { type: "string" }, b: { type: "integer" }, c: { type: "null" } }
    assert.strictEqual(
      JSON.stringify(exampleOf({ type: "object", properties, required: ["c", "a"] })),
      '{"a":"simulated","c":null}'
    )
    assert.deepEqual(exampleOf({ type: "object", properties }), { a: "simulated", b: 1, c: null })
  })

  it("reads a schema as Gemini writes it", () => {
    const place = { type: "OBJECT", nullable: true, properties: { name: { type: "STRING" } } }
    const schema = { type: "ARRAY", items: place, minItems: "2" }
    assert.deepEqual(exampleOf(schema), [{ name: "simulated" }, { name: "simulated" }])
    assert.isNull(exampleOf({ type: "STRING", nullable: true, enum: [null] }))
  })

  it("uses the first alternative that a value fits", () => {
    assert.deepEqual(exampleOf({ anyOf: [false, { enum: [] }, { const: [1] }] }), [1])
    const schema = { type: "string", anyOf: [{ type: "null" }, { enum: [3, "b"] }] }
    assert.strictEqual(exampleOf(schema), "b")
  })

  it("fails if no value fits", () => {
    assert.throws(() => exampleOf({ type: "integer", exclusiveMinimum: 3, exclusiveMaximum: 4 }))
    assert.throws(() => exampleOf(false), UnsatisfiableSchema)
  })
})

describe("patternExample", () => {
  it.each([
    "^[a-z]{3,5}$",
    "^(?:red|green)?-\\d+$",
    "\\.(png|jpe?g)$",
    "^[^aA1_]\\S\\D\\W\\x41\\u{42}\\t$",
    "^\\p{Lu}\\P{L}\\p{Nd}\\p{P}$",
    "^[\\w.+-]+@[a-z\\d]+(\\.[a-z]{2,})+$",
    "^(?<year>\\d{4})[\\]\\x30-9](?!x)a??b*?$"
  ])("returns a text that matches %s", (pattern) => {
    for (const length of [0, 1, 12]) {
      const text = patternExample(pattern, length)
      const isBounded = pattern.endsWith("5}$") || !/[+*]|,\}/u.test(pattern)
      assert.match(text, new RegExp(pattern, "u"))
      if (!isBounded) assert.isAtLeast(text.length, length)
    }
  })

  it("refuses patterns with endless texts", () => {
    assert.strictEqual(patternExample("(){900000000}", 0), "")
    for (const pattern of ["((a{999}){999}){999}", "x".repeat(4000)]) {
      assert.throws(() => patternExample(pattern, 0), RangeError)
    }
  })
})

describe("the example of a client's schema is made or refused within a second of CPU time for", () => {
  const list = (items: unknown) => ({ type: "array", minItems: 3900, items })
  const keyword = "x".repeat(100_000)
  const numbers = Array.from({ length: 50_000 }, (_, index) => index)
  const words = (prefix: string) => numbers.slice(0, 10_000).map((index) => `${prefix}${index}`)
  const nested = (group: string) => `${group.repeat(700)}a${")".repeat(700)}{1500}`

  it.each([
    [
      "a long reference",
      { $defs: { a: { $ref: `#/${"a/".repeat(50_000)}` } }, ...list({ $ref: "#/$defs/a" }) }
    ],
    ["many keywords", list(Object.fromEntries(numbers.map((index) => [`k${index}`, 1])))],
    ["many types", list({ allOf: [{ type: words("a") }, { type: words("b") }] })],
    ["a name that is required many times", list({ required: numbers.map(() => "a") })],
    ["a long name", list({ required: [keyword] })],
    ["limits that are lists", list({ type: "integer", minimum: numbers, maximum: numbers })],
    ["a long limit", list({ type: "string", minLength: "1".repeat(500_000) })],
    ["a pattern that is a list", list({ type: "string", pattern: numbers })],
    ["a long constant", list({ const: keyword })],
    ["nested groups", list({ type: "string", pattern: nested("(") })],
    ["nested groups without content", list({ type: "string", pattern: nested("(()|") })],
    ["a repetition of nothing", list({ type: "string", pattern: "((){5990})" })]
  ])("%s", (_, schema) => {
    const from = cpuMillis()
    let text = ""
    try {
      text = JSON.stringify(exampleOf(schema))
    } catch (error) {
      assert.isTrue(error instanceof RangeError || error instanceof UnsatisfiableSchema)
    }
    assert.isBelow(text.length, 1_000_000)
    assert.isBelow(cpuMillis() - from, 1000)
  })
})
