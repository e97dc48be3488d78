import { assert, describe, it } from "vitest"
import { withFirstMember, withMember } from "../../../src/domain/json/JsonBytes.ts"

const utf8 = new TextDecoder()
const bytes = (text: string) => new TextEncoder().encode(text)

describe("the text of a JSON object with a replaced member", () => {
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
    it(`is otherwise unchanged: ${what}`, () => {
      assert.equal(utf8.decode(withMember(bytes(text), "model", "x")), expected)
    })
  }

  for (const [text, expected] of [
    ['{"a":{"b":[1,{}]},"o":{"x":"}"} ,"c":1}', '{"a":{"b":[1,{}]},"o":1 ,"c":1}'],
    ['{"o" : [1,[2]]}', '{"o" : 1}'],
    ['{"a":"\\"o\\":2","o":true,"c":[]}', '{"a":"\\"o\\":2","o":1,"c":[]}'],
    ['{"o":-1.5e3}', '{"o":1}']
  ] as const) {
    it(`has the new value instead of one of any kind: ${text}`, () => {
      assert.equal(utf8.decode(withMember(bytes(text), "o", 1)), expected)
    })
  }

  it("has an added member before all others", () => {
    assert.equal(utf8.decode(withFirstMember(bytes(' {"a":1}'), "b", [])), '{"b":[],"a":1}')
    assert.equal(utf8.decode(withFirstMember(bytes("{ }"), "b", 1)), '{"b":1 }')
  })
})
