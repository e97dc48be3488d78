import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { manageReads } from "../../src/domain/limits/ShareLimits.ts"
import { FairShares } from "../../src/domain/shares/FairShares.ts"
import { layerGateway, makeUser } from "../support/gateway.ts"
import { stores } from "../support/stores.ts"

/** docs/reference/keys-and-limits.md#shares */
describe("reads of the management API", () => {
  it("of one user run one at a time, however many are sent, and leave places for others", () => {
    const shares = new FairShares(manageReads)
    const fill = (caller: string) => {
      let count = 0
      while (shares.take(caller)) count += 1
      return count
    }
    const filled = ["first", "second", "third", "fourth"].map(fill)
    assert.deepStrictEqual(filled, [1, 1, 1, 1])
  })

  layer(layerGateway({ database: stores.embedded }), { timeout: "60 seconds" })((it) => {
    it.effect("are all answered when a hundred come at once", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 10 })
        const read = user.call("GET", "/manage/v1/wallet/entries?limit=100")
        const reads = Array.from({ length: 100 }, () => read)
        const answers = yield* Effect.all(reads, { concurrency: "unbounded" })
        assert.isTrue(answers.every(({ status }) => status === 200))
      })
    )
  })
})
