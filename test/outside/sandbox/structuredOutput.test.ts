import { Ajv } from "ajv"
import formats from "ajv-formats"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { exampleOf, UnsatisfiableSchema } from "../../../src/sandbox/SchemaExample.ts"

type Json = Readonly<Record<string, unknown>>

const validator = new Ajv2020({
  strict: false,
  multipleOfPrecision: 6,
  ownProperties: true
})
formats.default(validator)

/** The rule that the value violates, if any. */
const faults = (schema: Json, value: unknown, by: Ajv | Ajv2020 = validator) => {
  const fits = by.compile(schema)
  return fits(value) ? undefined : by.errorsText(fits.errors)
}

const holds = (schema: Json) => {
  const text = JSON.stringify(exampleOf(schema))
  assert.isUndefined(faults(schema, JSON.parse(text)), `${JSON.stringify(schema)} got ${text}`)
  assert.strictEqual(JSON.stringify(exampleOf(schema)), text)
}

const joined = (...parts: ReadonlyArray<Json>): Json => Object.assign({}, ...parts)

const bounded = (low: string, high: string, value: fc.Arbitrary<number>): fc.Arbitrary<Json> =>
  fc
    .tuple(fc.option(value, { nil: undefined }), fc.option(fc.nat(20), { nil: undefined }))
    .map(([from, more]) => ({
      [low]: from,
      [high]: more === undefined ? undefined : (from ?? 0) + more
    }))

const patterns = [
  "^[a-z]{3,5}$",
  "^\\d{4}-\\d{2}-\\d{2}$",
  "[A-Z]+",
  "^(?:red|green|blue)$",
  "^\\+?[1-9]\\d{1,14}$",
  "^[^aA1]{2}\\.\\w+\\s?$",
  "^#(?:[0-9a-fA-F]{3}){1,2}$",
  "^(a(b|c){2}){2}$",
  "^\\p{Lu}\\p{L}*$",
  "^\\u0041[\\]\\-x]\\/?$",
  "^(?!0)\\d+$"
]

const knownFormats = [
  "date-time",
  "date",
  "time",
  "duration",
  "email",
  "hostname",
  "uri",
  "uri-reference",
  "ipv4",
  "ipv6",
  "uuid",
  "json-pointer",
  "regex",
  "byte"
]

const text = fc.oneof(
  bounded("minLength", "maxLength", fc.nat(30)).map((limits) => joined({ type: "string" }, limits)),
  fc.constantFrom(...knownFormats).map((format) => ({ type: "string", format })),
  fc
    .tuple(fc.constantFrom(...patterns), fc.nat(2))
    .map(([pattern, minLength]) => ({ type: "string", pattern, minLength }))
)

const number = fc
  .tuple(
    fc.constantFrom("integer", "number"),
    bounded("minimum", "maximum", fc.integer({ min: -1000, max: 1000 })),
    fc.boolean()
  )
  .map(([type, limits, isOpen]) => {
    const { maximum, minimum } = limits
    const isWide = Number(maximum) > Number(minimum) + 2
    return isOpen && isWide
      ? { type, exclusiveMinimum: minimum, exclusiveMaximum: maximum }
      : joined({ type }, limits)
  })

const multiple = fc
  .tuple(
    fc.constantFrom("integer", "number"),
    fc.integer({ min: 1, max: 60 }),
    fc.integer({ min: -500, max: 500 })
  )
  .map(([type, multipleOf, minimum]) => ({ type, multipleOf, minimum, maximum: minimum + 60 }))

/** ajv fails on values with these members, because its comparison calls them. */
const isComparable = (value: unknown): boolean =>
  !/"(?:toString|valueOf)":/u.test(JSON.stringify(value))

const scalar: fc.Arbitrary<Json> = fc.oneof(
  text,
  number,
  multiple,
  fc.constantFrom({ type: "boolean" }, { type: "null" }, { type: ["null", "integer"] }, {}),
  fc
    .uniqueArray(fc.jsonValue({ maxDepth: 1 }).filter(isComparable), { minLength: 1, maxLength: 4 })
    .map((values) => ({
      enum: values
    })),
  fc
    .jsonValue({ maxDepth: 2 })
    .filter(isComparable)
    .map((value) => ({ const: value })),
  fc
    .constantFrom("x", "π", '🎈\n"')
    .map((value) => ({ type: ["string", "null"], enum: [null, value] }))
)

const refs: fc.Arbitrary<Json> = fc.constantFrom(
  { $ref: "#/$defs/tree" },
  { $ref: "#/$defs/list" },
  { $ref: "#/$defs/other~1form" },
  { $ref: "#/$defs/even", description: "Beside a reference" }
)

/** Recursive in every way in which a value can end. */
const definitions = {
  tree: {
    type: "object",
    properties: {
      name: { type: "string" },
      left: { anyOf: [{ $ref: "#/$defs/tree" }, { type: "null" }] },
      right: { anyOf: [{ $ref: "#/$defs/tree" }, { $ref: "#/$defs/leaf" }] },
      below: { type: "array", items: { $ref: "#/$defs/tree" } }
    },
    required: ["name", "left", "right", "below"],
    additionalProperties: false
  },
  leaf: { type: "object", properties: { value: { type: "number" } }, required: ["value"] },
  list: { type: ["object", "null"], properties: { next: { $ref: "#/$defs/list" } } },
  even: { type: "object", properties: { odd: { $ref: "#/$defs/odd" } }, required: ["odd"] },
  odd: { anyOf: [{ $ref: "#/$defs/even" }, { type: "string", minLength: 3 }] },
  "other/form": { type: "array", items: { $ref: "#/$defs/leaf" }, minItems: 2 }
}

const names = fc.constantFrom("a", "b", "city", "über", "a/b", "constructor")

const { node } = fc.letrec<{ node: Json }>((tie) => {
  const inner = tie("node")
  const object = fc
    .record({
      members: fc.dictionary(names, inner, { maxKeys: 4 }),
      required: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      additionalProperties: fc.constantFrom(undefined, false, true),
      isSmall: fc.boolean()
    })
    .map(({ additionalProperties, isSmall, members, required }) => {
      const keys = Object.keys(members).filter((_, index) => required[index])
      return {
        type: "object",
        properties: members,
        required: keys.length === 0 ? undefined : keys,
        additionalProperties,
        maxProperties: isSmall ? keys.length : undefined,
        minProperties: additionalProperties === false ? undefined : keys.length
      }
    })
  const array = fc
    .tuple(inner, bounded("minItems", "maxItems", fc.nat(4)))
    .map(([items, limits]) => joined({ type: "array", items }, limits))
  const tuple = fc
    .tuple(fc.array(inner, { minLength: 1, maxLength: 3 }), fc.constantFrom(undefined, false))
    .map(([prefixItems, items]) => ({
      type: "array",
      prefixItems,
      minItems: prefixItems.length,
      items
    }))
  const record = inner.map((additionalProperties) => ({
    type: "object",
    additionalProperties,
    minProperties: 2
  }))
  const together = fc.tuple(inner, inner).map(([one, other]) => ({
    allOf: [
      { type: "object", properties: { one }, required: ["one"] },
      { properties: { other }, required: ["other"], minProperties: 3 }
    ]
  }))
  const union = fc.array(inner, { minLength: 1, maxLength: 3 }).map((forms) => ({ anyOf: forms }))
  const tagged = fc.array(inner, { minLength: 1, maxLength: 3 }).map((values) => ({
    oneOf: values.map((value, index) => ({
      type: "object",
      properties: { kind: { const: `kind${index}` }, value },
      required: ["kind", "value"]
    }))
  }))
  return {
    node: fc.oneof(
      { maxDepth: 5, depthSize: "small" },
      scalar,
      refs,
      object,
      array,
      tuple,
      record,
      together,
      union,
      tagged
    )
  }
})

describe("JSON of the sandbox, validated by ajv", () => {
  it("fits any schema for which it is made", () => {
    fc.assert(
      fc.property(node, (schema) => holds({ ...schema, $defs: definitions })),
      { numRuns: 1000 }
    )
  })

  it("fits definitions and tuples of draft 7", () => {
    const schema = {
      definitions: {
        pair: { type: "array", items: [{ type: "string" }, { type: "integer" }], minItems: 3 }
      },
      type: "object",
      properties: { pair: { $ref: "#/definitions/pair" } },
      required: ["pair"]
    }
    assert.isUndefined(faults(schema, exampleOf(schema), new Ajv({ strict: false })))
  })

  it("is not made for a schema that no value fits", () => {
    const dead: ReadonlyArray<unknown> = [
      false,
      { type: "string", enum: [1, 2] },
      { type: "integer", minimum: 5, maximum: 4 },
      { $ref: "#" },
      { type: "object", required: ["a"], additionalProperties: false },
      {
        $defs: { a: { type: "object", properties: { a: { $ref: "#/$defs/a" } }, required: ["a"] } },
        $ref: "#/$defs/a"
      },
      { type: "array", items: false, minItems: 1 },
      { allOf: [{ type: "string" }, { type: "null" }] }
    ]
    for (const schema of dead) {
      assert.throws(() => exampleOf(schema), UnsatisfiableSchema, undefined, JSON.stringify(schema))
    }
  })

  it("is made or refused within half a second of CPU for schemas that ask for too much", () => {
    const wide = (levels: number): Json =>
      levels === 0 ? { type: "null" } : { type: "array", minItems: 100, items: wide(levels - 1) }
    const branches = (levels: number): Json =>
      levels === 0
        ? { type: "string", enum: [1] }
        : {
            type: "object",
            required: ["a"],
            properties: { a: { anyOf: [branches(levels - 1), branches(levels - 1)] } }
          }
    const many: ReadonlyArray<unknown> = [
      wide(6),
      { type: "string", minLength: 1e9 },
      { type: "string", pattern: "^(a{1000}){1000}$" },
      { type: "string", pattern: "(){900000000}x" },
      { type: "string", pattern: "\\p{".repeat(100_000) },
      { type: "string", pattern: "(".repeat(9000) },
      { type: "array", minItems: 1e9 },
      { type: "object", minProperties: 1e9 },
      { type: "array", minItems: 1000, items: { const: "x".repeat(1e6) } },
      {
        type: "array",
        minItems: 5000,
        items: { type: "string", pattern: "(a|b|c){1}".repeat(200) }
      },
      branches(16)
    ]
    for (const schema of many) {
      const before = process.cpuUsage()
      try {
        exampleOf(schema)
      } catch (error) {
        assert.isTrue(error instanceof RangeError || error instanceof UnsatisfiableSchema)
      }
      const { system, user } = process.cpuUsage(before)
      assert.isBelow((system + user) / 1000, 500, JSON.stringify(schema).slice(0, 80))
    }
  })
})

describe("JSON of the sandbox, validated by zod", () => {
  const Category: z.ZodType = z.object({
    name: z.string(),
    get children() {
      return z.array(Category)
    }
  })
  const forms = {
    texts: z.object({
      email: z.email(),
      url: z.url(),
      uuid: z.uuid(),
      at: z.iso.datetime(),
      day: z.iso.date(),
      ipv4: z.ipv4(),
      ipv6: z.ipv6(),
      code: z.string().regex(/^[A-Z]{2}-\d{3}$/u),
      long: z.string().min(40),
      short: z.string().max(3)
    }),
    numbers: z.object({
      positive: z.number().positive(),
      negative: z.int().negative(),
      between: z.number().gt(0).lt(1),
      five: z.number().multipleOf(5).min(7)
    }),
    choices: z.object({
      colour: z.enum(["red", "green"]),
      literal: z.literal(["a", 2]),
      maybe: z.string().nullable(),
      optional: z.string().optional(),
      union: z.union([z.string(), z.number()]),
      tagged: z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("a"), a: z.string() }),
        z.object({ kind: z.literal("b"), b: z.number() })
      ]),
      both: z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() }))
    }),
    lists: z.object({
      tags: z.array(z.string()).min(3).max(5),
      pair: z.tuple([z.string(), z.number()]),
      record: z.record(z.string(), z.number()),
      keyed: z.record(z.enum(["x", "y"]), z.boolean())
    }),
    recursive: Category,
    strict: z.strictObject({ a: z.strictObject({ b: z.strictObject({ c: z.null() }) }) })
  }
  it.each(Object.entries(forms))("fits %s", (_, form) => {
    form.parse(exampleOf(z.toJSONSchema(form)))
  })
})
