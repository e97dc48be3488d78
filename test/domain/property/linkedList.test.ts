import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { LinkedList } from "../../../src/domain/shares/LinkedList.ts"
import type { ListNode } from "../../../src/domain/shares/LinkedList.ts"

const step = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), value: fc.nat(5) }),
  fc.record({ kind: fc.constant("remove" as const), nth: fc.nat(30) })
)

describe("a linked list", () => {
  it("has the added items that were not removed, in order, after any removals", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const list = new LinkedList<number>()
        const nodes: Array<ListNode<number>> = []
        let model: Array<ListNode<number>> = []
        for (const one of steps) {
          if (one.kind === "add") {
            const node = list.add(one.value)
            nodes.push(node)
            model.push(node)
          } else {
            const node = nodes[one.nth]
            if (node === undefined) continue
            list.remove(node)
            model = model.filter((it) => it !== node)
          }
          assert.strictEqual(list.first, model[0])
          for (let value = 0; value <= 6; value += 1) {
            const found = model.find((it) => it.value === value)
            assert.strictEqual(
              list.find((it) => it === value),
              found?.value
            )
          }
        }
        const seen: Array<ListNode<number>> = []
        for (let node = list.first; node !== undefined; node = node.next) seen.push(node)
        assert.deepStrictEqual(seen, model)
      })
    )
  })

  it("unlinks removed items from all others", () => {
    const list = new LinkedList<number>()
    const [first, second, third] = [list.add(1), list.add(2), list.add(3)]
    list.remove(second)
    list.remove(first)
    list.remove(third)
    for (const node of [first, second, third]) {
      assert.isUndefined(node.previous)
      assert.isUndefined(node.next)
    }
    assert.isUndefined(list.first)
  })
})
