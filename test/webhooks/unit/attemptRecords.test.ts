import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Fiber, Latch, Option } from "effect"
import { DeliveryId, EndpointId } from "../../../src/domain/Ids.ts"
import { makeAttemptRecords } from "../../../src/webhooks/AttemptRecords.ts"
import { Claimed, DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import type { Recorded } from "../../../src/webhooks/DeliveryStore.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"

const epoch = DateTime.makeUnsafe(0)
const unwritable = mockOutcome(200)

const record = (n: number): Recorded => ({
  claimed: new Claimed({
    id: DeliveryId.make(`whd_${n}`),
    createdAt: epoch,
    attempt: 0,
    seq: 1,
    dueAt: epoch,
    startedAt: epoch,
    body: new Uint8Array(),
    endpointId: EndpointId.make("whe_1"),
    url: "https://hooks.example.com/",
    secret: new Uint8Array(),
    previousSecret: null,
    previousSecretUntil: null
  }),
  endedAt: epoch,
  outcome: mockOutcome(200),
  nextDueAt: Option.none()
})

/** Records into an array of statements; the store answers when the test says so. */
const recording = Effect.gen(function* () {
  const statements: Array<ReadonlyArray<string>> = []
  const open = Latch.makeUnsafe(true)
  const store: Partial<DeliveryStore["Service"]> = {
    record: (all) => {
      if (all[0]?.outcome === unwritable) throw new Error("no row can be made of this")
      statements.push(all.map(({ claimed }) => claimed.id))
      return open.await
    }
  }
  const records = yield* makeAttemptRecords.pipe(
    Effect.provideService(DeliveryStore, store as DeliveryStore["Service"])
  )
  return { ...records, open, statements }
})

describe("records of attempts", () => {
  it.effect("are written at once, those of one turn together", () =>
    Effect.gen(function* () {
      const { statements, tell, written } = yield* recording
      tell(record(1))
      tell(record(2))
      yield* written
      assert.deepStrictEqual(statements, [["whd_1", "whd_2"]])
      tell(record(3))
      yield* written
      assert.deepStrictEqual(statements, [["whd_1", "whd_2"], ["whd_3"]])
    })
  )

  it.effect("that gather while others are written are then all written, 200 at once", () =>
    Effect.gen(function* () {
      const { open, statements, tell, written } = yield* recording
      yield* open.close
      for (let n = 0; n < 450; n += 1) tell(record(n))
      const waiting = yield* Effect.forkChild(written)
      for (let turn = 0; turn < 10; turn += 1) yield* Effect.yieldNow
      assert.strictEqual(statements.length, 1)
      yield* open.open
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(
        statements.map((ids) => ids.length),
        [200, 200, 50]
      )
      assert.strictEqual(statements.flat().at(-1), "whd_449")
    })
  )

  it.effect("hold up no other when one throws before it is written", () =>
    Effect.gen(function* () {
      const { statements, tell, written } = yield* recording
      tell({ ...record(1), outcome: unwritable })
      yield* written
      tell(record(2))
      yield* written
      assert.deepStrictEqual(statements, [["whd_2"]])
    })
  )
})
