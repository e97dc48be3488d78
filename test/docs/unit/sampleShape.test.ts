import { assert, describe, it } from "@effect/vitest"
import { blocksOf, labelOf } from "../../support/samples/Markdown.ts"
import { stepsOf } from "../../support/samples/SamplePage.ts"
import { answerFaults, jsonFaults } from "../../support/samples/Shape.ts"

const faults = (shown: unknown, real: unknown) => jsonFaults(shown, real, new Map())
const now = new Date().toISOString()
const id = "01a2063b-7f45-714f-b9ae-703df0046340"
const other = "019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f"
const shownKey = `sk-${"a".repeat(46)}`

describe("the output in a document", () => {
  it("may have other ids and times", () => {
    assert.deepEqual(faults({ id, at: "2026-01-01T00:00:00.000Z" }, { id: other, at: now }), [])
    assert.deepEqual(faults("whe_" + "0".repeat(32), "whe_" + "1".repeat(32)), [])
    assert.deepEqual(faults(shownKey, `sk-${"b".repeat(46)}`), [])
    assert.deepEqual(
      faults({ created: 1_795_400_895 }, { created: Math.trunc(Date.now() / 1000) }),
      []
    )
    const link = (expires: number, hex: string) =>
      `http://localhost:8080/artifacts/art_${hex.repeat(32)}?expires=${expires}&signature=${hex.repeat(64)}`
    assert.deepEqual(faults(link(1_795_487_293, "a"), link(1_795_400_000, "0")), [])
  })

  it("must have equal ids where the actual ids are equal", () => {
    assert.deepEqual(faults([id, id], [other, other]), [])
    assert.lengthOf(faults([id, id], [other, id]), 1)
  })

  it("must have ids of the same form, and equal amounts", () => {
    assert.lengthOf(faults(id, "12"), 1)
    assert.lengthOf(faults("whe_" + "0".repeat(32), "whd_" + "1".repeat(32)), 1)
    assert.lengthOf(faults({ amount: "7.50" }, { amount: "7.51" }), 1)
    assert.lengthOf(faults({ status: 402 }, { status: 403 }), 1)
    assert.lengthOf(faults("2026-01-01T00:00:00.000Z", "1999-01-01T00:00:00.000Z"), 1)
  })

  it("must have all members and items, unless it says that there are more", () => {
    assert.deepEqual(faults({ a: 1 }, { a: 1, b: 2 }), ["#/b is not shown"])
    assert.deepEqual(faults({ a: 1, b: 2 }, { a: 1 }), ["#/b did not come"])
    assert.deepEqual(faults({ a: 1, "…": "…" }, { a: 1, b: 2 }), [])
    assert.lengthOf(faults([1], [1, 2]), 1)
    assert.deepEqual(faults([1, "…"], [1, 2]), [])
  })

  it("may omit lines, and parts of a line", () => {
    const text = (shown: string, real: string) => answerFaults("text", shown, real, new Map())
    assert.deepEqual(text("a\n…\nc …\n", "a\nb\nb\nc d\n"), [])
    assert.lengthOf(text("a\n…\nd", "a\nb\nc"), 1)
    assert.lengthOf(text("a", "a\nb"), 1)
    assert.lengthOf(text("a\nb", "a"), 1)
    assert.lengthOf(answerFaults("json", "{}", "no", new Map()), 1)
  })
})

describe("the blocks of a page", () => {
  const page =
    "```sh\nls\n```\n\n```text\na\n```\n\n- item\n\n  ```ts a.ts\n  a()\n  ```\n\n```json\n{}\n```\n"

  it("keep their words, lines and indentation", () => {
    const blocks = blocksOf(page)
    assert.deepEqual(blocks.map(labelOf), ["sh ls", "text a", "ts a.ts a()", "json {}"])
    assert.deepEqual(
      blocks.map(({ line }) => line),
      [1, 5, 11, 15]
    )
  })

  it("are all run, output, files or listed", () => {
    assert.throws(() => stepsOf(page, {}), "line 15")
    assert.deepEqual(
      stepsOf(page, { "json {}": "a reason" }).map(({ kind }) => kind),
      ["run", "answer", "file", "skip"]
    )
  })
})
