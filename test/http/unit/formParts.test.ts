import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { LongText } from "../../../src/domain/json/LongText.ts"
import { textCodePointsMax } from "../../../src/domain/limits/Limits.ts"
import { FormScanner } from "../../../src/http/openai/FormParts.ts"

/** docs/reference/shapes.md#forms */

const partsOf = (fields: ReadonlyArray<readonly [name: string, value: string]>) => {
  const parts = fields.map(
    ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  )
  const bytes = Buffer.from(`${parts.join("")}--b--`)
  const scanner = new FormScanner("b")
  assert.isUndefined(scanner.add(bytes))
  return Result.getOrThrow(scanner.parts(bytes)).map(({ value }) => value)
}

describe("the parts of a form", () => {
  it("include a text as a string, whatever comes before it", () => {
    const prompt = "中".repeat(textCodePointsMax)
    const image = "A".repeat(8_000_000)
    const [first, ...others] = partsOf([
      ["image", image],
      ["prompt", prompt],
      ["model", "m"]
    ])
    assert.instanceOf(first, LongText)
    assert.isTrue(others[0] === prompt)
    assert.strictEqual(others[1], "m")
  })
})
