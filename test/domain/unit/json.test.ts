import { assert, describe, it } from "vitest"
import { withString } from "../../../src/domain/Json.ts"

describe("the text of a JSON object with another string", () => {
  for (const [what, text, expected] of [
    ["first", '{"model":"a","b":1}', '{"model":"x","b":1}'],
    ["spaces", ' {\n "model" :\t"a" } ', ' {\n "model" :\t"x" } '],
    ["a value of that name", '{"a":"model","model":"b"}', '{"a":"model","model":"x"}'],
    [
      "escapes",
      String.raw`{"a\"{":"}\\","mod\u0065l":"\"a\\"}`,
      String.raw`{"a\"{":"}\\","mod\u0065l":"x"}`
    ],
    [
      "deeper ones",
      '{"a":{"model":"b"},"c":[{"model":"d"}],"model":"e","f":{"model":"g"}}',
      '{"a":{"model":"b"},"c":[{"model":"d"}],"model":"x","f":{"model":"g"}}'
    ],
    [
      "numbers",
      '{"seed":12345678901234567890,"model":"a"}',
      '{"seed":12345678901234567890,"model":"x"}'
    ],
    ["none", '{"a":["model"]}', '{"a":["model"]}']
  ] as const) {
    it(`changes nothing else: ${what}`, () => {
      assert.equal(withString(text, "model", "x"), expected)
    })
  }
})
