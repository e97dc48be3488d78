import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { Label } from "../../../src/catalog/bodies/Bodies.ts"
import { acceptBody, inspectMedia, mediaIn } from "../../../src/catalog/media/Media.ts"
import { mediaFields } from "../../../src/catalog/media/MediaFields.ts"
import { selectRange } from "../../../src/http/server/ByteRanges.ts"
import { leastBodies } from "../../support/bodies.ts"
import { cpuMillis } from "../../support/cpuTime.ts"
import { bmp, jpeg, mp3, png, wav, webp } from "../../support/media.ts"

/** For any input a decoder returns a value or faults, never a defect. */

const label = fc.constantFrom(...Label.literals)
const wild = fc.oneof(
  fc.anything({ withNullPrototype: true, maxDepth: 3 }),
  fc.jsonValue(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("data:image/png;base64,", "artifact:art_0", "https://", "AAAA", "==", -0, 1e308)
)

describe("body decoders", () => {
  it("never fail with a defect, and name each fault by a pointer", () =>
    fc.assert(
      fc.asyncProperty(label, fc.string(), wild, async (label, key, value) => {
        const keys = [key, ...Object.keys(leastBodies[label])]
        for (const name of keys) {
          const body = { ...leastBodies[label], [name]: value }
          const exit = await Effect.runPromiseExit(
            Effect.result(acceptBody(label, body)).pipe(
              Effect.map((it) => (it._tag === "Failure" ? it.failure.errors : []))
            )
          )
          assert.isTrue(Exit.isSuccess(exit), `${label} ${name} ${fc.stringify(value)}`)
          if (Exit.isSuccess(exit)) {
            for (const { pointer } of exit.value) assert.match(pointer, /^#(?:\/|$)/)
          }
        }
      }),
      { numRuns: 150 }
    ))
})

describe("media inspection", () => {
  const files = [png(), jpeg(), bmp(), webp(), webp({ kind: "lossless" }), wav(5), mp3(200)]
  const rules = Object.values(mediaFields).flatMap((fields) => Object.values(fields))

  it("a file with bytes changed or cut is accepted or refused, never a defect, within a second of the processor", () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...files),
        fc.constantFrom(...rules),
        fc.array(fc.tuple(fc.nat({ max: 200 }), fc.nat({ max: 255 })), { maxLength: 8 }),
        fc.nat({ max: 5000 }),
        async (file, rule, changes, cut) => {
          const bytes = file.slice(0, Math.max(1, file.length - (cut % 7 === 0 ? cut : 0)))
          for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte
          const began = cpuMillis()
          const exit = await Effect.runPromiseExit(Effect.result(inspectMedia(bytes, rule)))
          assert.isTrue(Exit.isSuccess(exit))
          assert.isBelow(cpuMillis() - began, 1000)
        }
      ),
      { numRuns: 1000 }
    ))
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
