import { assert, describe, it } from "@effect/vitest"
import { directives, parse } from "../../../src/sandbox/Script.ts"

describe("Script", () => {
  it("is empty for a prompt without directives", () => {
    assert.deepStrictEqual(parse("A [[fox]] in the snow"), {
      text: "A [[fox]] in the snow",
      script: {},
      faults: []
    })
  })

  it("parses the example of every directive, and removes it from the text", () => {
    const scripts = Object.values(directives).map(({ example }) => parse(`A fox ${example}`))
    assert.deepStrictEqual(
      scripts.map(({ faults, text }) => ({ faults, text })),
      scripts.map(() => ({ faults: [], text: "A fox" }))
    )
    assert.deepStrictEqual(Object.assign({}, ...scripts.map(({ script }) => script)), {
      throttledSubmits: 2,
      failedSubmits: 2,
      refusal: "operator",
      isSubmitLost: true,
      crash: "after-submit",
      delayMillis: 30_000,
      itemsMax: 1,
      ending: "lost"
    })
  })

  it("combines several directives, and the later of two conflicting ones applies", () => {
    const { script, text } = parse("[[sim:slow=2m]] A fox [[sim:partial=1]][[sim:slow=500ms]]")
    assert.deepStrictEqual(script, { delayMillis: 500, itemsMax: 1 })
    assert.strictEqual(text, "A fox")
  })

  it("reports an unknown directive and a wrong value", () => {
    assert.deepStrictEqual(parse("[[sim:slwo=1s]] [[sim:slow=soon]] [[sim:hang=1]]").faults, [
      "[[sim:slwo=1s]] is not a directive of the simulator",
      "[[sim:slow=soon]] must have the form [[sim:slow=30s]]",
      "[[sim:hang=1]] must have the form [[sim:hang]]"
    ])
    assert.lengthOf(parse("[[sim:constructor]]").faults, 1)
    assert.lengthOf(parse("[[sim:slow=25h]] [[sim:429=1001]]").faults, 2)
  })
})
