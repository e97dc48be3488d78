import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import type { Progress, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

/** docs/reference/vendors.md#poll-interval, ADR 0195 */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Jobs that keep running, with a rate of polls, and the times of their polls by prompt. */
const runningJobs = (perSecond: number) => {
  const polled: Array<readonly [at: number, prompt: string]> = []
  const submits: Array<string> = []
  const vendor: Partial<VendorAccount> = {
    rateOf: (act) =>
      act === "poll" ? { key: "account/polls", calls: perSecond, perMillis: 1000 } : undefined,
    submit: ({ body }) =>
      Effect.sync(() => {
        const { prompt } = body as { readonly prompt: string }
        submits.push(prompt)
        const pollAfter = Duration.millis(2500)
        return { _tag: "Accepted" as const, handle: { prompt }, pollAfter }
      }),
    poll: ({ prompt }) =>
      Effect.gen(function* () {
        polled.push([yield* Clock.currentTimeMillis, String(prompt)])
        const running: Progress = { _tag: "Running", pollAfter: Duration.millis(2500) }
        return running
      })
  }
  return { layer: layerGateway({ vendor }), polled, submits }
}

describe("many jobs at an account", () => {
  const { layer, polled, submits } = runningJobs(4)
  it.effect(
    "are polled within its rate, equally often, and do not delay another user's few jobs",
    () =>
      Effect.gen(function* () {
        const [busy, other] = [yield* makeUser(), yield* makeUser()]
        for (let n = 0; n < 60; n += 1) {
          const { status, text } = yield* busy.call("POST", path, { prompt: `busy ${n}` })
          assert.strictEqual(status, 202, text)
        }
        const submitted = Effect.sync(() => submits.length)
        yield* eventually(submitted, (count) => count === 60)
        yield* advance("5 seconds", "500 millis")
        yield* other.call("POST", path, { prompt: "other" })
        yield* eventually(submitted, (count) => count === 61)
        const since = yield* Clock.currentTimeMillis
        yield* advance("40 seconds", "500 millis")

        const times = polled.map(([at]) => at)
        for (const at of times) {
          // Permits are 250 ms apart, and the test's clock advances by 500
          assert.isAtMost(times.filter((it) => it >= at && it < at + 10_000).length, 42)
        }
        const own = polled.filter(([, prompt]) => prompt === "other").map(([at]) => at - since)
        assert.isAtMost(own[0]!, 5000)
        assert.isAtLeast(own.length, 7, "also later")
        const counts = Array.from(
          { length: 60 },
          (_, n) => polled.filter(([, prompt]) => prompt === `busy ${n}`).length
        )
        assert.isAtLeast(Math.min(...counts), 1)
        assert.isAtMost(Math.max(...counts) - Math.min(...counts), 2)
      }).pipe(Effect.provide(layer)),
    120_000
  )
})
