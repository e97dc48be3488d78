import { Result } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { at } from "../../../src/domain/json/Json.ts"
import { documentOf, parseDocument, valueWithTexts } from "../../../src/domain/json/JsonDocument.ts"
import {
  jsonDepthMax,
  jsonOutlineBytesMax,
  jsonWeightMax,
  longTextBytesMin
} from "../../../src/domain/json/JsonLimits.ts"
import { JsonScanner } from "../../../src/domain/json/JsonScanner.ts"
import { LongText } from "../../../src/domain/json/LongText.ts"
import { atOnce, sliceBytes } from "../../../src/domain/shares/Slices.ts"
import type { Sliced } from "../../../src/domain/shares/Slices.ts"
import { cpuMillis } from "../../support/cpuTime.ts"

const mebi = 1024 * 1024

/** The scanner's result, and how much it had read by then. */
const scan = (bytes: Uint8Array, chunk = sliceBytes) => {
  const scanner = new JsonScanner()
  for (let at = 0; at < bytes.length; at += chunk) {
    const fault = scanner.add(bytes.subarray(at, at + chunk))
    if (fault !== undefined) return { scanner, fault, read: at + chunk }
  }
  return { scanner, fault: undefined, read: bytes.length }
}

const parsed = (text: string, chunk?: number) => {
  const bytes = Buffer.from(text)
  const { fault, scanner } = scan(bytes, chunk)
  assert.isUndefined(fault)
  return Result.map(atOnce(parseDocument(bytes, scanner)), (it) => atOnce(valueWithTexts(it)))
}

const escapes = (text: string): string =>
  text.replaceAll(/[^\p{ASCII}]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
    ).join("")
  )

const piece = fc.constantFrom("a", '"', "\\", "é", "😀", "\n", "\u0001", "/", "{", ",", "\ud800")
const text = fc
  .tuple(fc.array(piece, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 300 }))
  .map(([pieces, times]) => pieces.join("").repeat(times))
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    text,
    fc.integer(),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.array(fc.tuple(text, tie("json")), { maxLength: 4 }).map((it) => Object.fromEntries(it))
  )
}))

describe("a JSON body whose long strings are kept as bytes", () => {
  it("has the value that JSON.parse returns, however it is chunked and escaped", () => {
    fc.assert(
      fc.property(json, fc.integer({ min: 1, max: 900 }), fc.boolean(), (value, chunk, isAscii) => {
        const whole = JSON.stringify(value)
        const sent = isAscii ? escapes(whole) : whole
        assert.deepStrictEqual(Result.getOrThrow(parsed(sent, chunk)), JSON.parse(sent))
      }),
      { numRuns: 300 }
    )
  })

  it("has its texts as strings next to ten inline images, even if every character is escaped", () => {
    const prompt = "語".repeat(99_000)
    const images = Array.from({ length: 10 }, (_, at) => `${at}${"A".repeat(450_000)}`)
    const written = `{"images":${JSON.stringify(images)},"prompt":"${escapes(prompt)}"}`
    const value = Result.getOrThrow(parsed(written))
    assert.strictEqual(at(value, "prompt"), prompt)
  })

  it("is refused if JSON.parse refuses it, even for a fault within a long string", () => {
    const long = "a".repeat(longTextBytesMin)
    for (const content of ["\n", "\\x", "\\u00g0", "\\u12"]) {
      assert.isTrue(Result.isFailure(parsed(`["${long}${content}"]`)), content)
    }
    const bytes = Buffer.from(`["${long}é"]`).subarray(0, -3)
    const invalid = Buffer.concat([bytes, Buffer.from('"]')])
    assert.isTrue(Result.isFailure(atOnce(parseDocument(invalid, scan(invalid).scanner))))
  })

  it("is refused if continuation bytes without a character fill more than a piece", () => {
    const content = Buffer.alloc(2 * mebi, 0x80)
    const steps = new LongText(content).isValid()
    const results = Array.from({ length: 10 }, () => steps.next())
    assert.strictEqual(results.find(({ done }) => done)?.value, false)
  })

  it("reads a long string in pieces that end between characters", () => {
    for (const part of ["\\\\", "\\ud83d\\ude00", "é\\n😀", `${"x".repeat(29)}\\"`]) {
      const content = part.repeat((2.5 * mebi) / part.length)
      const given = new LongText(Buffer.from(content))
      assert.isTrue(atOnce(given.isValid()), part)
      const bytes = Buffer.from(atOnce(given.bytes())).toString()
      assert.isTrue(bytes === JSON.parse(`"${content}"`), part)
    }
  })
})

const list = (part: string, count: number) => `[${part.repeat(count)}1]`

describe("a JSON body that is a bomb", () => {
  for (const [what, body, detail] of [
    ["objects", list("{},", 10 * mebi), "complex"],
    ["lists", list("[],", 10 * mebi), "complex"],
    ["numbers", list("1,", 10 * mebi), "complex"],
    ["strings", list('"",', 10 * mebi), "complex"],
    ["keys", `{${'"":1,'.repeat(5 * mebi)}"":1}`, "complex"],
    ["levels", "[".repeat(mebi), "deeply"],
    ["white space", list(" ".repeat(mebi), 30), "large"]
  ] as const) {
    it(`is refused after a fraction of it has been read: ${what}`, () => {
      const bytes = Buffer.from(body)
      const { fault, read } = scan(bytes)
      assert.include(fault, detail)
      assert.isBelow(read, Math.max(bytes.length / 4, 2 * sliceBytes))
    })
  }

  it("is recognized at the first step above a limit", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)
    assert.isTrue(Result.isSuccess(parsed(nested(jsonDepthMax))))
    assert.isTrue(Result.isFailure(documentOf(Buffer.from(nested(jsonDepthMax + 1)))))
    // The list counts 4
    assert.isUndefined(scan(Buffer.from(list("1,", jsonWeightMax - 4))).fault)
    assert.isDefined(scan(Buffer.from(list("1,", jsonWeightMax - 3))).fault)
    assert.isUndefined(scan(Buffer.alloc(jsonOutlineBytesMax, " ")).fault)
    assert.isDefined(scan(Buffer.alloc(jsonOutlineBytesMax + 1, " ")).fault)
  })
})

/** Asserts that each step takes less CPU time. One of three runs has to, because the first ones compile. */
const assertShortSteps = (make: () => Sliced<unknown>, millis: number) => {
  const run = () => {
    const steps = make()
    let longest = 0
    for (;;) {
      const before = cpuMillis()
      const { done } = steps.next()
      longest = Math.max(longest, cpuMillis() - before)
      if (done === true) return longest
    }
  }
  let longest = run()
  for (let more = 0; more < 2 && longest >= millis; more += 1) longest = Math.min(longest, run())
  assert.isBelow(longest, millis)
}

const messages = (count: number, content: string) =>
  JSON.stringify({
    messages: Array.from({ length: count }, (_, at) => ({ role: "user", content: content + at }))
  })

describe("no turn of the event loop takes longer than 50 ms for a body that is accepted", () => {
  const keys = Math.floor(jsonWeightMax / 18) - 10
  for (const [what, body] of [
    ["128 MiB of Base64", `{"image":"${"A".repeat(128 * mebi)}"}`],
    ["10 MiB of CSV", JSON.stringify({ prompt: 'a;b,{"c":[1]},"x"\n'.repeat(580_000) })],
    ["10 MiB in another alphabet", JSON.stringify({ prompt: "日本語".repeat(1_200_000) })],
    ["5800 messages of a chat", messages(5800, "a".repeat(2000))],
    ["token ids", JSON.stringify(Array.from({ length: 390_000 }, (_, at) => at % 100_000))],
    ["distinct keys", `{${Array.from({ length: keys }, (_, at) => `"k${at}":1`).join(",")}}`],
    ["distinct strings", JSON.stringify(Array.from({ length: 44_000 }, (_, at) => `s${at}`))],
    ["objects", list("{},", Math.floor(jsonWeightMax / 17) - 1)]
  ] as const) {
    it(
      what,
      () => {
        const bytes = Buffer.from(body)
        const { fault, scanner } = scan(bytes)
        assert.isUndefined(fault)
        assertShortSteps(function* () {
          const document = Result.getOrThrow(yield* parseDocument(bytes, scanner))
          yield
          yield* valueWithTexts(document)
        }, 50)
      },
      60_000
    )
  }
})
