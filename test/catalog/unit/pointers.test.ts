import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  bodyParseOptions,
  faultsOf,
  longTextFaults,
  pointerOf,
  describeValue
} from "../../../src/catalog/FieldFaults.ts"
import { LongText } from "../../../src/domain/json/LongText.ts"
import { faultsMax } from "../../../src/domain/limits/Limits.ts"
import { cpuMillis } from "../../support/cpuTime.ts"

const faultsFor = (schema: Schema.Codec<unknown, unknown>, input: unknown, options = {}) =>
  Schema.decodeUnknownEffect(schema, { ...bodyParseOptions, ...options })(input).pipe(
    Effect.flip,
    Effect.map((error) => faultsOf(error.issue))
  )

describe("longTextFaults", () => {
  const long = new LongText(Buffer.alloc(300, "a"))
  it("names the strings that are too long, up to the number that is shown", () => {
    const detail = "Expected a shorter string, got a string of 300 bytes"
    assert.deepStrictEqual(longTextFaults({ a: [1, { "b/c": long }], d: "x" }), [
      { pointer: "#/a/1/b~1c", detail }
    ])
    assert.deepStrictEqual(longTextFaults(long), [{ pointer: "#", detail }])
    assert.lengthOf(longTextFaults(Array.from({ length: 40_000 }, () => long)), faultsMax)
  })
  it("takes a small part of an event loop turn for the maximum number of values in a body", () => {
    const value = { a: { b: Array.from({ length: 390_000 }, (_, at) => at) } }
    const took = Array.from({ length: 3 }, () => {
      const before = cpuMillis()
      longTextFaults(value)
      return cpuMillis() - before
    })
    assert.isBelow(Math.min(...took), 25)
  })
})

describe("pointerOf", () => {
  it("writes a JSON pointer as a URI fragment (RFC 6901, section 6)", () => {
    assert.strictEqual(pointerOf([]), "#")
    assert.strictEqual(pointerOf(["images", 0]), "#/images/0")
    assert.strictEqual(pointerOf(["a/b"]), "#/a~1b")
    assert.strictEqual(pointerOf(["m~n"]), "#/m~0n")
    assert.strictEqual(pointerOf(["c%d"]), "#/c%25d")
    assert.strictEqual(pointerOf([" "]), "#/%20")
    assert.strictEqual(pointerOf([""]), "#/")
    assert.strictEqual(pointerOf(["中"]), "#/%E4%B8%AD")
  })
  it("accepts names that are not valid Unicode and cuts long ones", () => {
    assert.strictEqual(pointerOf(["\ud800"]), "#/%EF%BF%BD")
    assert.isBelow(pointerOf(["x".repeat(1_000_000)]).length, 100)
  })
})

describe("describeValue", () => {
  it("returns one line at most", () => {
    assert.strictEqual(describeValue("a"), '"a"')
    assert.strictEqual(describeValue([1, 2]), "an array of 2 items")
    assert.strictEqual(describeValue({ a: 1 }), "an object")
    assert.strictEqual(describeValue(null), "null")
    assert.isBelow(describeValue("x".repeat(1_000_000)).length, 80)
  })
})

describe("faultsOf", () => {
  const Person = Schema.Struct({
    name: Schema.String,
    age: Schema.NullOr(Schema.Finite),
    pets: Schema.Array(Schema.Struct({ kind: Schema.Literals(["cat", "dog"]) }))
  })

  it.effect("lists each fault with its place", () =>
    Effect.map(
      faultsFor(Person, { age: "x", pets: [{ kind: "cat" }, { kind: "cow", legs: 4 }] }),
      (faults) =>
        assert.deepStrictEqual(
          [...faults].sort((a, b) => a.pointer.localeCompare(b.pointer)),
          [
            { pointer: "#/age", detail: 'Expected a finite number or null, got "x"' },
            { pointer: "#/name", detail: "Required, but missing" },
            { pointer: "#/pets/1/kind", detail: 'Expected "cat" or "dog", got "cow"' },
            { pointer: "#/pets/1/legs", detail: "Unknown field" }
          ]
        )
    )
  )
  it.effect("quotes no values without reportInput, for bodies that hold secrets", () =>
    Effect.map(
      faultsFor(Person, { name: 7, age: 1, pets: "p" }, { reportInput: false }),
      (faults) =>
        assert.deepStrictEqual(faults, [
          { pointer: "#/name", detail: "Expected a string" },
          { pointer: "#/pets", detail: "Expected an array" }
        ])
    )
  )
  it.effect("lists at most 100 faults and counts the rest", () =>
    Effect.map(
      faultsFor(
        Schema.Array(Schema.String),
        Array.from({ length: 250 }, () => 1)
      ),
      (faults) => {
        assert.strictEqual(faults.length, 100)
        assert.deepStrictEqual(faults[99], { pointer: "#", detail: "And 151 more faults" })
      }
    )
  )
})
