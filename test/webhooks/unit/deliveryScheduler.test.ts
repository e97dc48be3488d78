import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { EndpointId } from "../../../src/domain/Ids.ts"
import { Hints } from "../../../src/process/signals/Hints.ts"
import { WorkNotifier } from "../../../src/process/signals/WorkNotifier.ts"
import { DeliveryScheduler } from "../../../src/webhooks/DeliveryScheduler.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import { mockProcess } from "../../support/mockProcess.ts"

const endpoints = (count: number) =>
  Array.from({ length: count }, (_, n) => EndpointId.make(`whe_${n}`))

/** The endpoints that are announced to the other processes. */
const sharedOf = Effect.fnUntraced(function* (due: ReadonlyArray<EndpointId>) {
  const shared: Array<string> = []
  const layer = DeliveryScheduler.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        WorkNotifier.layerNoop,
        mockProcess({
          ownedTasks: () => false
        }),
        Layer.mock(DeliveryStore, {
          due: () => Effect.succeed({ endpoints: due, next: Option.none() })
        }),
        Layer.succeed(Hints, {
          publishUnsafe: (_topic, key) => void shared.push(key),
          subscribe: () => {}
        })
      )
    )
  )
  yield* Context.get(yield* Layer.build(layer), DeliveryScheduler).notifyDue
  return shared
}, Effect.scoped)

/** docs/reference/processes.md#hints */
describe("due deliveries", () => {
  it.effect("of a backlog are sent by all processes, and a few retries by the one that scans", () =>
    Effect.gen(function* () {
      assert.lengthOf(yield* sharedOf(endpoints(100)), 0)
      assert.deepStrictEqual(yield* sharedOf(endpoints(1000)), endpoints(1000))
    })
  )
})
