import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import { EndpointId } from "../../../src/domain/Ids.ts"
import { Hints } from "../../../src/process/signals/Hints.ts"
import type { HintTopic } from "../../../src/process/signals/Hints.ts"
import { TaskInbox } from "../../../src/tasks/running/TaskInbox.ts"
import * as WorkNotifierLive from "../../../src/tasks/running/WorkNotifierLive.ts"
import { WebhookDispatcher } from "../../../src/webhooks/WebhookDispatcher.ts"

/** A notifier that receives the test's hints and opens the actors it asks for. */
const start = Effect.fnUntraced(function* (open: Effect.Effect<void>) {
  const handlers = new Map<HintTopic, (key: string) => void>()
  const actor = Effect.as(open, { deliver: Effect.void })
  const layer = WorkNotifierLive.layer.pipe(
    Layer.provide(Layer.mock(WebhookDispatcher, { open: () => actor })),
    Layer.provide(
      Layer.succeed(Hints, {
        publishUnsafe: () => {},
        subscribe: (topic, handler) => void handlers.set(topic, handler)
      })
    )
  )
  const inbox = Context.get(yield* Layer.build(layer), TaskInbox)
  return { inbox, hint: (topic: HintTopic, key: string) => handlers.get(topic)?.(key) }
})

/** docs/reference/processes.md#hints */
describe("hints of another process", () => {
  it.effect("about a due task wake the scheduler at once, without a timer", () =>
    Effect.gen(function* () {
      const { hint, inbox } = yield* start(Effect.void)
      let scans = 0
      const scan = Effect.sync(() => {
        scans += 1
        if (scans === 2) hint("run", "before the sleep")
        return Number.POSITIVE_INFINITY
      })
      yield* Effect.forkScoped(inbox.run({ scan, failed: "The scan failed", retryMillis: 1000 }))
      // The test's clock does not advance
      const turns = Effect.repeat(Effect.yieldNow, { times: 100 })
      yield* turns
      assert.strictEqual(scans, 1)
      hint("run", "task")
      yield* turns
      assert.strictEqual(scans, 3)
    }).pipe(Effect.scoped)
  )

  it.effect("about many endpoints open a few actors at a time, each once", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const done = yield* Deferred.make<void>()
      const ids = Array.from({ length: 100 }, (_, n) =>
        EndpointId.make(`whe_${String(n).padStart(32, "0")}`)
      )
      let opening = 0
      let most = 0
      let opened = 0
      const { hint } = yield* start(
        Effect.gen(function* () {
          opening += 1
          most = Math.max(most, opening)
          yield* Deferred.await(gate)
          opening -= 1
          opened += 1
          if (opened === ids.length) yield* Deferred.succeed(done, undefined)
        })
      )
      for (const id of ids) hint("endpoint", id)
      for (const id of ids) hint("endpoint", id)
      yield* Effect.repeat(Effect.yieldNow, { times: 1000 })
      assert.strictEqual(opening, 8, "each needs a statement of the shared pool")
      yield* Deferred.succeed(gate, undefined)
      yield* Deferred.await(done)
      assert.deepStrictEqual([most, opened], [8, 100])
    }).pipe(Effect.scoped)
  )
})
