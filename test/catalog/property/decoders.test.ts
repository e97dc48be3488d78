import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { Label } from "../../../src/catalog/bodies/Bodies.ts"
import { inspectMedia, mediaIn } from "../../../src/catalog/media/Media.ts"
import { mediaFields } from "../../../src/catalog/media/MediaFields.ts"
import { selectRange } from "../../../src/http/server/ByteRanges.ts"
import { anyText } from "../../support/anyText.ts"

/** For any input a decoder returns a value or faults, never a defect. */

const label = fc.constantFrom(...Label.literals)
const wild = fc.oneof(
  fc.anything({ withNullPrototype: true, maxDepth: 3 }),
  fc.jsonValue(),
  anyText,
  fc.constantFrom("data:image/png;base64,", "artifact:art_0", "https://", "AAAA", "==", -0, 1e308)
)

describe("media inspection", () => {
  const rules = Object.values(mediaFields).flatMap((fields) => Object.values(fields))

  it("arbitrary bytes are refused", () =>
    fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom(...rules),
        async (bytes, rule) => {
          const exit = await Effect.runPromiseExit(Effect.result(inspectMedia(bytes, rule)))
          assert.isTrue(Exit.isSuccess(exit) && exit.value._tag === "Failure")
        }
      ),
      { numRuns: 500 }
    ))
  it("finds media in any value", () =>
    fc.assert(
      fc.property(label, wild, (label, value) => {
        assert.isArray(mediaIn(label, value))
      })
    ))
})

describe("Range", () => {
  it("a part lies within the medium, whatever the header says", () =>
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc
            .tuple(fc.option(fc.nat()), fc.option(fc.nat()))
            .map(([first, last]) => `bytes=${first ?? ""}-${last ?? ""}`)
        ),
        fc.nat({ max: 1000 }),
        (header, size) => {
          const selected = selectRange(header, size)
          if (selected._tag !== "Part") return
          const { end, start } = selected.range
          assert.isTrue(start >= 0 && start <= end && end < size)
        }
      )
    ))
})
