import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { readFile } from "../../../src/catalog/CatalogSource.ts"
import { decodeDescribed } from "../../../src/catalog/jobs/DescribedBody.ts"
import type { BodySchema } from "../../../src/catalog/jobs/DescribedBody.ts"
import { evaluate, Medium } from "../../../src/catalog/jobs/Expression.ts"
import { render } from "../../../src/catalog/jobs/Template.ts"
import type { Template } from "../../../src/catalog/jobs/Template.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedKinds } from "../../support/upstreams/describedKinds.ts"

/**
 * docs/vendors-as-files.md: a file may come from a third party. Every fault in it is reported with its place, and none
 * causes a defect.
 */

const closed = (properties: object, more: object = {}): BodySchema => ({
  type: "object",
  properties: { ...properties },
  required: [],
  additionalProperties: false,
  ...more
})

const withBody = (body: unknown) =>
  JSON.stringify({
    mediaModels: [
      {
        vendor: "fal",
        model: "m",
        upstreamModel: "a/b",
        result: "images",
        body,
        price: { per: "call", amount: "1.00" }
      }
    ]
  })

const nested = (levels: number, open: string, close: string) =>
  `${open.repeat(levels)}1${close.repeat(levels)}`

const faultsIn = Effect.fnUntraced(function* (text: string) {
  const folder = temporaryFolder("hostile")
  const path = join(folder, "catalog.json")
  writeFileSync(path, text)
  const read = yield* Effect.result(readFile(path))
  rmSync(folder, { recursive: true })
  return Result.isSuccess(read) ? [] : read.failure.errors
}, Effect.provide(NodeServices.layer))

/** The places of a file's faults, without their common prefix. */
const placesOf = (text: string, start: string) =>
  Effect.map(faultsIn(text), (faults) => faults.map(({ pointer }) => pointer.replace(start, "")))

const inBody = (body: unknown) => placesOf(withBody(body), "#/mediaModels/0/body")
const inField = (field: unknown) =>
  placesOf(withBody(closed({ f: field })), "#/mediaModels/0/body/properties/f")

const { jobs } = describedKinds
const inJobs = (change: object) =>
  placesOf(
    JSON.stringify({ vendors: [{ ...describedKinds, jobs: { ...jobs, ...change } }] }),
    "#/vendors/0/jobs"
  )

describe("a hostile body", () => {
  it.effect("is refused for patterns, references and conditions, each at its place", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* inField({ type: "string" }), [])
      for (const [name, value] of Object.entries({
        pattern: "(a+)+$",
        patternProperties: { "(a+)+$": {} },
        propertyNames: { pattern: "(a+)+$" },
        $ref: "#/properties/f",
        $dynamicRef: "#x",
        if: {},
        not: {},
        contains: {},
        unevaluatedProperties: false
      })) {
        assert.deepStrictEqual(yield* inField({ [name]: value }), [`/${encodeURIComponent(name)}`])
      }
      const self = { $defs: { a: { $ref: "#/$defs/a" } } }
      assert.deepStrictEqual(yield* inBody(closed({ f: { $ref: "#/$defs/a" } }, self)), [
        "/%24defs",
        "/properties/f/%24ref"
      ])
      const deepPattern = { anyOf: [{ type: "array", items: { pattern: "a" } }] }
      assert.deepStrictEqual(yield* inField(deepPattern), ["/anyOf/0/items/pattern"])
    })
  )

  it.effect(
    "is refused for keywords of the wrong kind, and for defaults that it does not accept itself",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(
          yield* inField({ type: "text", minLength: "1", enum: [{}], items: 1, multipleOf: 0 }),
          ["/type", "/minLength", "/enum", "/items", "/multipleOf"]
        )
        assert.deepStrictEqual(yield* inField({ type: "integer", default: "abc" }), ["/default"])
        assert.deepStrictEqual(yield* inField({ type: "integer", maximum: 5, default: 6 }), [
          "/default"
        ])
        assert.deepStrictEqual(yield* inBody(closed({}, { required: ["constructor"] })), [
          "/required/0"
        ])
        assert.deepStrictEqual(yield* inBody({ ...closed({}), additionalProperties: true }), [
          "/additionalProperties"
        ])
        const objects = (...names: ReadonlyArray<string>) => ({
          anyOf: names.map((name) => ({ type: "object", properties: { [name]: {} } }))
        })
        assert.deepStrictEqual(yield* inField({ allOf: [objects("a", "b"), objects("c", "d")] }), [
          "/allOf/1"
        ])
      })
  )

  it.effect("is refused in plain words if its keywords cannot be checked together", () =>
    Effect.gen(function* () {
      const text = { type: "string" }
      const cases = [
        [
          { type: "object", properties: { a: text }, additionalProperties: text },
          "/additionalProperties",
          "Expected true or false beside properties: a schema for the others is not supported"
        ],
        [
          {
            allOf: [
              { type: "object", properties: { a: text }, additionalProperties: true },
              { anyOf: [{ type: "object", properties: { b: text } }, { type: "object" }] },
              { anyOf: [{ type: "object", properties: { c: text } }, { type: "object" }] }
            ]
          },
          "/allOf/2",
          "These keywords cannot be combined: write them as one schema without allOf"
        ]
      ] as const
      for (const [field, place, words] of cases) {
        const faults = yield* faultsIn(withBody(closed({ f: field })))
        assert.deepStrictEqual(
          faults.map(({ detail, pointer }) => [pointer, detail]),
          [[`#/mediaModels/0/body/properties/f${place}`, `${words} (line 1)`]]
        )
      }
      const open = { type: "object", properties: { a: text }, additionalProperties: true }
      assert.deepStrictEqual(yield* inField(open), [])
      assert.deepStrictEqual(yield* inField({ type: "object", additionalProperties: text }), [])
    })
  )

  it("reports all rules of a number for a value of the wrong type", () => {
    const body = closed({
      steps: { type: "integer", minimum: 1, maximum: 50 },
      side: { type: "integer", minimum: 64, multipleOf: 8 },
      seed: { type: ["integer", "null"], minimum: 0 },
      count: { type: "integer" },
      strength: { type: "number", exclusiveMinimum: 0 },
      scale: { type: "number" }
    })
    const wordsFor = (value: unknown) => {
      const given = { steps: value, side: value, seed: value, count: value, strength: value }
      const decoded = decodeDescribed(body, { ...given, scale: value })
      if (Result.isSuccess(decoded)) throw new Error("nothing was refused")
      return decoded.failure.map(({ detail, pointer }) => `${pointer} ${detail}`)
    }
    const expected = [
      "#/steps Expected an integer greater than or equal to 1 and less than or equal to 50",
      "#/side Expected an integer greater than or equal to 64 and that is a multiple of 8",
      "#/seed Expected an integer greater than or equal to 0 or null",
      "#/count Expected an integer",
      "#/strength Expected a number greater than 0",
      "#/scale Expected a finite number"
    ]
    assert.deepStrictEqual(
      wordsFor("x"),
      expected.map((it) => `${it}, got "x"`)
    )
    assert.deepStrictEqual(
      wordsFor(null),
      expected.filter((it) => !it.startsWith("#/seed")).map((it) => `${it}, got null`)
    )
  })

  it.effect("has a bounded number of levels, alternatives and schemas", () =>
    Effect.gen(function* () {
      const items = (levels: number): object => (levels === 0 ? {} : { items: items(levels - 1) })
      assert.deepStrictEqual(yield* inField(items(22)), [])
      assert.deepStrictEqual(yield* inField(items(24)), ["/items".repeat(24)])
      const choices = Array.from({ length: 65 }, (_, index) => ({ const: index }))
      assert.deepStrictEqual(yield* inField({ anyOf: choices }), ["/anyOf"])
      const wide = Object.fromEntries(Array.from({ length: 2001 }, (_, at) => [`f${at}`, {}]))
      assert.deepStrictEqual(yield* inBody(closed(wide)), [""])
      assert.deepStrictEqual(yield* inField({ description: "x".repeat(65_536) }), [
        "#/mediaModels/0/body"
      ])
    })
  )

  it.effect("is a fault and not a defect, however deep it is", () =>
    Effect.gen(function* () {
      for (const levels of [100, 5000, 200_000]) {
        for (const [open, close] of [
          ["[", "]"],
          ['{"items":', "}"]
        ] as const) {
          const text = withBody(closed({ f: "HERE" })).replace(
            '"HERE"',
            nested(levels, open, close)
          )
          const [place = ""] = yield* placesOf(text, "#/mediaModels/0/body")
          assert.isTrue(place.startsWith("/properties/f/"), place)
        }
      }
    })
  )

  it.effect("is refused for fields that every object inherits, at any level", () =>
    Effect.gen(function* () {
      const fields: BodySchema = JSON.parse('{"__proto__":{},"constructor":{},"toString":{}}')
      const names = ["__proto__", "constructor", "toString"]
      assert.deepStrictEqual(
        yield* inBody(closed({ f: { type: "object", properties: fields } })),
        names.map((name) => `/properties/f/properties/${name}`)
      )
      const text = withBody(closed({})).replace('"properties":{}', '"properties":{"__proto__":{}}')
      assert.deepStrictEqual(yield* placesOf(text, "#/mediaModels/0/body"), [
        "/properties/__proto__"
      ])
    })
  )

  it("cannot be sent with inherited names either", () => {
    const of = (text: string) =>
      Result.isSuccess(decodeDescribed(closed({ f: { type: "string" } }), JSON.parse(text)))
    assert.deepStrictEqual(
      ['{"f":"a"}', "{}", '{"__proto__":{"f":1}}', '{"constructor":1}'].map(of),
      [true, true, false, false]
    )
  })
})

describe("a body with very many values", () => {
  it("is refused by a schema with many alternatives, instead of being checked against each", () => {
    const alternatives = Array.from({ length: 64 }, (_, at) => ({
      type: "object",
      properties: { a: { const: at } }
    }))
    const body = closed({
      f: { type: "array", items: { type: "array", items: { oneOf: alternatives } } }
    })
    const of = (count: number) =>
      decodeDescribed(body, { f: [Array.from({ length: count }, () => ({ a: 1 }))] })
    assert.isTrue(Result.isSuccess(of(1000)))
    assert.deepStrictEqual(
      of(20_000),
      Result.fail([{ pointer: "#", detail: "Expected at most 3030 values" }])
    )
  })
})

describe("a hostile protocol", () => {
  it.effect("is refused with the place of each fault", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* inJobs({}), [])
      const at = (place: string, change: object) =>
        Effect.map(inJobs(change), (places) => assert.deepStrictEqual(places, [place], place))
      const fail = (rule: object) => ({ failures: [{ class: "CONTENT", ...rule }] })
      yield* at("/failures/0/when", fail({ when: "true ||" }))
      yield* at("/failures/0/when", fail({ when: 'message.matches("(a+)+$")' }))
      yield* at("/failures/0/when", fail({ when: `${"(".repeat(900)}true${")".repeat(900)}` }))
      yield* at("/failures/0/when", fail({ when: `${"!".repeat(1900)}true` }))
      // A search for a long text can take quadratic time
      yield* at("/failures/0/when", fail({ when: "message.contains(code)" }))
      yield* at("/failures/0/when", fail({ when: `message.contains("${"a".repeat(201)}")` }))
      yield* at("/poll/path", { poll: { path: "/v1/../x" } })
      yield* at("/poll/path", { poll: { path: "/v1/{other}" } })
      yield* at("/state/at", { state: { ...jobs!.state, at: "$..state" } })
      yield* at("/results/urls/0", { results: { urls: ["$[?@.a]"] } })
      yield* at("/auth/name", { auth: { scheme: "header", name: "Host" } })
      yield* at("/usage/a", { usage: { a: "b" } })
      const { submit } = jobs!
      yield* at("/submit/json/a/%24cel", { submit: { ...submit, json: { a: { $cel: "1 +" } } } })
      yield* at("/submit/json/a/%24", { submit: { ...submit, json: { a: { $: "body" } } } })
      yield* at("/submit/json/a", { submit: { ...submit, json: { a: { $: "$.body", b: 1 } } } })
      const file = { $file: "$.body.image" }
      const { json: _json, ...others } = submit
      yield* at("/submit/form/b", { submit: { ...others, form: { a: file, b: file } } })
      yield* at("/callbacks/proof/secret/at", {
        callbacks: {
          parameter: "hook",
          proof: { scheme: "standard-webhooks", secret: { path: "/s", at: "$.a[*]" } }
        }
      })
      const [first] = jobs!.models
      const priced = (price: object) => ({ models: [{ ...first, price }] })
      yield* at("/models/0/price/hold", priced({ per: "expression", hold: "1.5" }))
      yield* at("/models/0/price/hold", priced({ per: "expression", hold: "body.a / 2" }))
    })
  )

  it.effect("is refused if it uses the name of a prototype", () =>
    Effect.gen(function* () {
      const text = JSON.stringify({ vendors: [describedKinds] }).replace(
        '"handle":{"id"',
        '"handle":{"__proto__":"$.x","id"'
      )
      assert.deepStrictEqual(yield* placesOf(text, "#/vendors/0/jobs"), [
        "/submit/handle/__proto__"
      ])
    })
  )
})

describe("the work for a request", () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
  const isMade = (template: Template, body: object) =>
    Result.isSuccess(render(template, { body, model: "m", task: "t" }))
  const each = (levels: number): Template =>
    levels === 0 ? 1 : { $each: "$.body.a[*]", $as: each(levels - 1) }

  it("is bounded for lists of lists", () => {
    assert.isTrue(isMade(each(2), { a: numbers(100) }))
    assert.isFalse(isMade(each(4), { a: numbers(100) }))
    assert.isFalse(isMade(each(8), { a: numbers(100) }))
  })

  it("is bounded for the expressions of a list, which all read the body", () => {
    const template: Template = { $each: "$.body.a[*]", $as: { $cel: "item + 1" } }
    assert.isTrue(isMade(template, { a: numbers(100), b: { c: numbers(1000) } }))
    assert.isFalse(isMade(template, { a: numbers(100), b: { c: numbers(100_000) } }))
  })

  it("is bounded for an expression that joins lists or texts", () => {
    const joined = (body: object) =>
      Result.isSuccess(evaluate(`size(${Array(40).fill("body.a").join(" + ")})`, "value", { body }))
    assert.isTrue(joined({ a: numbers(100) }))
    assert.isFalse(joined({ a: numbers(10_000) }))
    assert.isTrue(joined({ a: "x".repeat(100_000) }))
    assert.isFalse(joined({ a: Array(100).fill("x".repeat(100_000)) }))
  })

  it("is bounded for copies of the body's values", () => {
    const copies = (count: number): Template =>
      Array.from({ length: count }, () => ({ $: "$.body.image" }))
    const image = new Medium("x".repeat(10_000_000))
    assert.isTrue(isMade(copies(4), { image }))
    assert.isFalse(isMade(copies(5), { image }))
    const computed: Template = Array.from({ length: 5 }, () => ({ $cel: "'a' + body.image" }))
    assert.isFalse(isMade(computed, { image }))
  })

  it("is not done for a vendor's response with very many values, which then fulfills no condition", () => {
    const scope = (count: number) => ({
      status: 400,
      code: "",
      message: "",
      response: numbers(count)
    })
    const found = (count: number) =>
      evaluate("status == 400 && code == ''", "condition", scope(count))
    assert.deepStrictEqual(found(1000), Result.succeed(true))
    assert.isTrue(Result.isFailure(found(1_000_000)))
    const deep: unknown = JSON.parse(nested(100_000, "[", "]"))
    assert.isTrue(Result.isFailure(evaluate("status == 400", "condition", { response: deep })))
  })
})

describe("a medium in an expression", () => {
  const value = (text: string, image: unknown) =>
    JSON.stringify(Result.getOrUndefined(evaluate(text, "value", { body: { image } })))

  it("has a beginning and an end, and text may precede it", () => {
    const image = new Medium("/9j/4AAQ==")
    assert.strictEqual(value('has(body.image) && body.image.startsWith("/9j/")', image), "true")
    assert.strictEqual(value('body.image.endsWith("==")', image), "true")
    assert.strictEqual(
      value('"data:image/jpeg;base64," + body.image', image),
      '"data:image/jpeg;base64,/9j/4AAQ=="'
    )
  })

  it("is never read as a whole, whether it is small or large", () => {
    for (const image of [new Medium("abc"), "x".repeat(10_000_000)]) {
      for (const text of [
        "size(body.image)",
        'body.image.contains("a")',
        "body.image + body.image"
      ]) {
        assert.isUndefined(value(text, image), text)
      }
    }
  })
})
