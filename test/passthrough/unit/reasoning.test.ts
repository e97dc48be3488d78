import { assert, describe, it } from "vitest"
import { mayReason } from "../../../src/passthrough/Reasoning.ts"

/** docs/reference/passthrough.md#streams-left-by-their-client */

const mayThink = (body: object) => mayReason("gemini-generate", [{ reasons: false }] as never, body)

describe("a request to Gemini", () => {
  it("may think unless every budget that it sets, in either spelling, is 0", () => {
    const off = { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }
    assert.isFalse(mayThink(off))
    assert.isFalse(mayThink({ generation_config: { thinking_config: { thinking_budget: 0 } } }))
    assert.isTrue(mayThink({ generationConfig: { thinkingConfig: {} } }))
    assert.isTrue(
      mayThink({ generationConfig: { thinkingConfig: { thinkingBudget: 0, thinking_budget: 9 } } })
    )
    assert.isTrue(
      mayThink({
        generationConfig: {
          thinkingConfig: { thinkingBudget: 0 },
          thinking_config: {
            thinkingBudget: 9
          }
        }
      })
    )
    assert.isTrue(
      mayThink({ ...off, generation_config: { thinkingConfig: { thinkingBudget: 9 } } })
    )
  })

  it("without a budget thinks if its model does", () => {
    assert.isFalse(mayThink({}))
    assert.isFalse(mayThink({ generationConfig: { thinkingConfig: null } }))
  })
})
