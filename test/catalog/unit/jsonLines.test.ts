import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { pointerOf } from "../../../src/catalog/FieldFaults.ts"
import { linesOf } from "../../../src/catalog/JsonLines.ts"

/** docs/catalog.md#vendors: faults of a catalog file have their lines. */
describe("the line of a value in a JSON file", () => {
  const text = `{
  "a/b": [
    1, { "x": "two\\" {[,:",
      "y": [ [], {},
        3 ] }
  ],
  "n": null
}
`
  it("is found by its pointer; a missing value has the line of the object or list that lacks it", () => {
    const places: ReadonlyArray<readonly [string, number]> = [
      ["#", 1],
      ["#/a~1b", 2],
      ["#/a~1b/0", 3],
      ["#/a~1b/1/x", 3],
      ["#/a~1b/1/y", 4],
      ["#/a~1b/1/y/1", 4],
      ["#/a~1b/1/y/2", 5],
      ["#/n", 7],
      ["#/a~1b/1/price", 3],
      ["#/a~1b/7/price/input", 2],
      ["#/other", 1]
    ]
    assert.deepStrictEqual(
      linesOf(
        text,
        places.map(([pointer]) => pointer)
      ),
      places.map(([, line]) => line)
    )
  })

  it("is the line on which the value is printed, for any JSON", () => {
    const mark = "the only one"
    const path = fc.array(fc.oneof(fc.string({ maxLength: 20 }), fc.nat({ max: 3 })), {
      maxLength: 5
    })
    fc.assert(
      fc.property(path, fc.jsonValue(), (keys, other) => {
        const wrapped = keys.toReversed().reduce<unknown>(
          (value, key) =>
            typeof key === "number"
              ? Array.from({ length: key + 1 }, (_, at) => (at === key ? value : other))
              : Object.fromEntries([
                  ["before", other],
                  [key, value]
                ]),
          mark
        )
        const printed = JSON.stringify(wrapped, null, 2)
        const lines = printed.split("\n")
        const own = lines.findIndex((line) => line.includes(`"${mark}"`)) + 1
        assert.deepStrictEqual(linesOf(printed, [pointerOf(keys)]), [own])
      })
    )
  })
})
