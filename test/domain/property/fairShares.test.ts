import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { FairShares } from "../../../src/domain/shares/FairShares.ts"

const capacity = 16
const aloneMax = 0.75

const caller = fc.constantFrom("a", "b", "c", "d", "e")
const places = fc.integer({ min: 1, max: 6 })
const step = fc.oneof(
  fc.record({ kind: fc.constant("take" as const), caller, places }),
  fc.record({ kind: fc.constant("wait" as const), caller, places }),
  fc.record({ kind: fc.constant("give" as const), at: fc.nat() }),
  fc.record({ kind: fc.constant("giveUp" as const), at: fc.nat() })
)

interface Held {
  readonly caller: string
  readonly places: number
}

const run = (steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>) => {
  const shares = new FairShares({ capacity, aloneMax, queueMax: 3 })
  const held: Array<Held> = []
  const waiting: Array<Held & { readonly giveUp: () => void }> = []
  const pick = <A>(from: Array<A>, at: number) => from.splice(at % from.length, 1)[0]!
  const heldBy = (name: string) =>
    held.reduce((sum, it) => sum + (it.caller === name ? it.places : 0), 0)
  const check = () => {
    const taken = held.reduce((sum, it) => sum + it.places, 0)
    assert.strictEqual(shares.taken, taken)
    assert.isAtMost(taken, capacity)
    const names = new Set([...held, ...waiting].map((it) => it.caller))
    assert.strictEqual(shares.callers, names.size)
    // A caller that has nothing and waits does so only while no slot of its own is free
    const poorest = waiting.filter((it) => heldBy(it.caller) === 0)
    if (poorest.length > 0) {
      assert.isTrue(poorest.some((it) => it.places > capacity - taken))
    }
  }
  for (const step of steps) {
    if (step.kind === "take" && shares.take(step.caller, step.places)) held.push(step)
    if (step.kind === "wait") {
      const entry = { caller: step.caller, places: step.places, giveUp: () => {} }
      let isQueued = false
      const giveUp = shares.wait(step.caller, step.places, () => {
        const before = heldBy(step.caller)
        assert.isTrue(
          before === 0 || before + step.places <= Math.ceil(capacity * aloneMax),
          "a share"
        )
        if (isQueued) waiting.splice(waiting.indexOf(entry), 1)
        held.push(entry)
      })
      if (giveUp !== undefined && !held.includes(entry)) {
        isQueued = true
        entry.giveUp = giveUp
        waiting.push(entry)
      }
    }
    if (step.kind === "give" && held.length > 0) {
      const it = pick(held, step.at)
      shares.give(it.caller, it.places)
    }
    if (step.kind === "giveUp" && waiting.length > 0) pick(waiting, step.at).giveUp()
    check()
  }
  for (const { giveUp } of waiting.splice(0)) giveUp()
  for (const it of held.splice(0)) shares.give(it.caller, it.places)
  assert.deepStrictEqual([shares.taken, shares.callers], [0, 0])
}

describe("FairShares", () => {
  it("never exceeds its capacity, serves the caller that holds the least first, and leaks nothing", () => {
    fc.assert(fc.property(fc.array(step, { maxLength: 200 }), run), { numRuns: 500 })
  })

  it("delays a caller by at most one service, however much another caller asks for", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 4 }),
        (many, few) => {
          const shares = new FairShares({ capacity, aloneMax, queueMax: 1000 })
          let greedy = 0
          for (let n = 0; n < many; n += 1) shares.wait("greedy", 1, () => (greedy += 1))
          let entered = 0
          for (let n = 0; n < few; n += 1) shares.wait("other", 1, () => (entered += 1))
          assert.isAtLeast(entered, Math.min(few, 3))
          // One service of everything that runs now
          for (let n = greedy; n > 0; n -= 1) shares.give("greedy")
          assert.strictEqual(entered, few)
        }
      )
    )
  })
})
