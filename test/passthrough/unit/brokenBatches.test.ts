import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { makeBatch } from "../../../src/db/Batch.ts"
import { makeGroupCommit } from "../../../src/db/GroupCommit.ts"

type Run = (items: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>>

const kinds = {
  "a batch": (run: Run) => makeBatch({ run, itemsMax: 2, runsMax: 1 }),
  "a group commit": (run: Run) => makeGroupCommit(run, { callsMax: 2, commitsMax: 1 })
}

for (const [name, make] of Object.entries(kinds)) {
  describe(name, () => {
    it.effect("that cannot even be begun fails its own calls, and holds up no other", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const call = yield* make((items) => {
            if (items.includes("broken")) throw new Error("cannot be written")
            return Effect.succeed(items.map((item) => `${item} done`))
          })
          assert.isTrue(Exit.hasDies(yield* Effect.exit(call("broken"))))
          assert.strictEqual(yield* call("later"), "later done")
        })
      )
    )
  })
}
