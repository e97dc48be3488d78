import { assert, describe, it } from "vitest"
import { searchOn } from "../../../src/console/api/searchOn.ts"

/** A list without rows before the page of this number. */
const listOf = (first: number) => {
  const asked: Array<string | undefined> = []
  const load = async (cursor: string | undefined) => {
    asked.push(cursor)
    const page = Number(cursor ?? 0)
    return { data: page < first ? [] : [page], next_cursor: `${page + 1}` }
  }
  return { asked, load }
}

describe("a search", () => {
  it("continues after empty pages until something matches", async () => {
    const { asked, load } = listOf(3)
    assert.deepStrictEqual(await searchOn(load, undefined), { data: [3], next_cursor: "4" })
    assert.deepStrictEqual(asked, [undefined, "1", "2", "3"])
  })

  it("stops when its time is over, and can be resumed at that page", async () => {
    const { load } = listOf(3)
    const page = await searchOn(load, undefined, performance.now())
    assert.deepStrictEqual(page, { data: [], next_cursor: "1" })
    assert.deepStrictEqual((await searchOn(load, "1")).data, [3])
  })
})
