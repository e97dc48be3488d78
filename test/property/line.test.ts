import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Line } from "../../src/delivery/Line.ts"
import type { Place } from "../../src/delivery/Line.ts"

const step = fc.oneof(
  fc.record({ kind: fc.constant("join" as const), value: fc.nat(5) }),
  fc.record({ kind: fc.constant("leave" as const), nth: fc.nat(30) })
)

describe("a line", () => {
  it("has who joined and has not left, in their order, whoever leaves and however often", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = new Line<number>()
        const places: Array<Place<number>> = []
        let model: Array<Place<number>> = []
        for (const one of steps) {
          if (one.kind === "join") {
            const place = line.join(one.value)
            places.push(place)
            model.push(place)
          } else {
            const place = places[one.nth]
            if (place === undefined) continue
            line.leave(place)
            model = model.filter((it) => it !== place)
          }
          assert.strictEqual(line.first, model[0])
          for (let value = 0; value <= 6; value += 1) {
            const found = model.find((it) => it.value === value)
            assert.strictEqual(
              line.find((it) => it === value),
              found?.value
            )
          }
        }
        const seen: Array<Place<number>> = []
        for (let place = line.first; place !== undefined; place = place.behind) seen.push(place)
        assert.deepStrictEqual(seen, model)
      })
    )
  })

  it("keeps nothing alive by those who have left: they point to nobody", () => {
    const line = new Line<number>()
    const [first, second, third] = [line.join(1), line.join(2), line.join(3)]
    line.leave(second)
    line.leave(first)
    line.leave(third)
    for (const place of [first, second, third]) {
      assert.isUndefined(place.before)
      assert.isUndefined(place.behind)
    }
    assert.isUndefined(line.first)
  })
})
