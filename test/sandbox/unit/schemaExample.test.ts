import { assert, describe, it } from "@effect/vitest"
import { patternExample } from "../../../src/sandbox/PatternExample.ts"
import { exampleOf, UnsatisfiableSchema } from "../../../src/sandbox/SchemaExample.ts"

describe("exampleOf", () => {
  it("has the required members in the order of the schema, else all", () => {
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

  it("takes the first alternative that a value fits", () => {
    assert.deepEqual(exampleOf({ anyOf: [false, { enum: [] }, { const: [1] }] }), [1])
    const schema = { type: "string", anyOf: [{ type: "null" }, { enum: [3, "b"] }] }
    assert.strictEqual(exampleOf(schema), "b")
  })

  it("fails where no value fits", () => {
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
  ])("a text that %s matches", (pattern) => {
    for (const length of [0, 1, 12]) {
      const text = patternExample(pattern, length)
      const isBounded = pattern.endsWith("5}$") || !/[+*]|,\}/u.test(pattern)
      assert.match(text, new RegExp(pattern, "u"))
      if (!isBounded) assert.isAtLeast(text.length, length)
    }
  })

  it("refuses to be endless", () => {
    for (const pattern of ["(){900000000}", "((a{999}){999}){999}", "x".repeat(4000)]) {
      assert.throws(() => patternExample(pattern, 0), RangeError)
    }
  })
})
