import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { UserId } from "../../../src/domain/Ids.ts"
import { Callbacks } from "../../../src/tasks/callbacks/Callbacks.ts"
import { PollPacing } from "../../../src/tasks/submission/PollPacing.ts"
import { PollPacingStore } from "../../../src/tasks/submission/PollPacingStore.ts"
import type { VendorAccount } from "../../../src/vendors/VendorClient.ts"

/** docs/reference/vendors.md#poll-interval */

const account: VendorAccount = {
  accountId: "fal-queue@fal:test",
  submit: () => Effect.die("not asked"),
  poll: () => Effect.die("not asked"),
  cancel: () => Effect.die("not asked"),
  callbacks: {
    keys: { _tag: "Published", url: "https://vendor.example/jwks.json", parse: () => [] },
    readSignature: () => undefined,
    verify: () => false
  }
}

const job = {
  account,
  upstreamModel: "a",
  userId: UserId.make("019a0000-0000-7000-8000-000000000002"),
  after: Duration.seconds(3)
}

const hour = 3_600_000

describe("a job whose vendor calls back", () => {
  it.effect("is polled as often as any other job after the clock was set back", () => {
    const state = { asked: 0, calledAt: 10 * hour }
    const stubs = Layer.mergeAll(
      Layer.mock(Callbacks, { isOn: true, callbackUrl: () => undefined }),
      Layer.mock(PollPacingStore, {
        waiting: () => Effect.succeed([]),
        calledAt: () =>
          Effect.sync(() => {
            state.asked += 1
            return Option.some(state.calledAt)
          })
      })
    )
    const secondsTo = (due: DateTime.Utc) =>
      Effect.map(DateTime.now, (now) => Duration.toSeconds(DateTime.distance(now, due)))
    return Effect.gen(function* () {
      const pacing = yield* PollPacing
      yield* TestClock.setTime(10 * hour)
      assert.strictEqual(yield* Effect.flatMap(pacing.first(job), secondsTo), 60)
      yield* TestClock.setTime(hour)
      assert.strictEqual(yield* Effect.flatMap(pacing.next(job), secondsTo), 3)
      assert.strictEqual(state.asked, 2)
    }).pipe(Effect.provide(PollPacing.layer.pipe(Layer.provide(stubs))))
  })
})
