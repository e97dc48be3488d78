import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { AppConfig } from "../../../src/config/Config.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import type { HoldsLeft } from "../../../src/passthrough/CallHoldStore.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import { Metering } from "../../../src/passthrough/Metering.ts"
import type { HeldCall } from "../../../src/passthrough/Metering.ts"
import { ReservationStore } from "../../../src/passthrough/reservations/ReservationStore.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { Process } from "../../../src/process/heartbeat/Process.ts"
import { WorkNotifier } from "../../../src/process/signals/WorkNotifier.ts"
import { callEnd, callKeyOf, callStart, credits, grantAll } from "../../support/wallets.ts"

/** The service with stores that grant everything. docs/reference/passthrough.md#metering */

const user = UserId.make(randomUUID())
const key = callKeyOf(user)

const make = () => {
  const ended: Array<string> = []
  const drawn: Array<string> = []
  const orphansBefore: Array<DateTime.Utc> = []
  let left: HoldsLeft = { calls: new Set(), reservations: new Map() }
  const stores = Layer.mergeAll(
    Layer.mock(CallStore, {
      write: ({ ends }) =>
        Effect.sync(() => {
          ended.push(...ends.map(({ id }) => id))
          return { refused: new Map(), left: new Map(), endpoints: [] }
        }),
      orphans: (_, before) =>
        Effect.sync(() => {
          orphansBefore.push(before)
          return []
        }),
      holdsLeft: () => Effect.sync(() => left)
    }),
    Layer.mock(ReservationStore, {
      write: ({ ended: ends, sizes }) =>
        Effect.sync(() => {
          drawn.push(...ends.map(({ start }) => start.id))
          return { grants: grantAll(sizes), endpoints: [] }
        }),
      lost: () => Effect.succeed([])
    }),
    Layer.mock(Process, {
      id: "prc_test",
      callsAliveSince: DateTime.now,
      duty: () => Effect.succeed(Effect.sleep("1 minute")),
      silences: () => 0,
      publishChange: () => {},
      onWaiting: () => {},
      isAlive: () => true,
      databaseMillis: (millis = 0) => millis,
      ownedTasks: () => false,
      confirm: Effect.void
    })
  )
  const layer = Metering.layer.pipe(
    Layer.provide([stores, Drain.layer, WorkNotifier.layerNoop, AppConfig.layerOf({})])
  )
  const holdsLeft = (value: HoldsLeft) => {
    left = value
  }
  return { ended, drawn, orphansBefore, layer, holdsLeft }
}

const hold = (start = callStart(user, 1)) =>
  Effect.gen(function* () {
    const metering = yield* Metering
    const nowMillis = yield* Clock.currentTimeMillis
    return yield* metering.hold(start, { mayDraw: true, nowMillis })
  })

/** A call with its own hold, and a call that draws on the reservation of its key. */
const bothHeld = Effect.gen(function* () {
  const own = callStart(user, 1)
  const held = yield* hold(own)
  assert.isFalse(held.hold.drawn)
  for (let n = 0; n < 20; n += 1) yield* hold()
  yield* TestClock.adjust("10 millis")
  const drawing = callStart(user, 1)
  const drawn = yield* hold(drawing)
  assert.isTrue(drawn.hold.drawn)
  return { own, held, drawing, drawn }
})

const retaken = ({ hold }: HeldCall) =>
  Effect.callback<boolean>((resume) => hold.retake((isHeld) => resume(Effect.succeed(isHeld))))

describe("the hold of a call", () => {
  it.effect("is settled by the first close only", () => {
    const { drawn: drawnEnds, ended, layer } = make()
    return Effect.gen(function* () {
      const { drawing, drawn, held, own } = yield* bothHeld
      for (const [start, { close }] of [
        [own, held],
        [drawing, drawn]
      ] as const) {
        close(callEnd(start, 1))
        close(callEnd(start, 0))
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual([ended, drawnEnds], [[own.id], [drawing.id]])
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "is retaken only if the store still has it, or a reservation that covers the key",
    () => {
      const { holdsLeft, layer } = make()
      return Effect.gen(function* () {
        const { drawn, held, own } = yield* bothHeld
        const both = Effect.all([retaken(held), retaken(drawn)])
        holdsLeft({ calls: new Set(), reservations: new Map() })
        assert.deepStrictEqual(yield* both, [false, false])
        holdsLeft({ calls: new Set([own.id]), reservations: new Map([[key, credits(0.5)]]) })
        assert.deepStrictEqual(yield* both, [true, false])
        holdsLeft({ calls: new Set([randomUUID()]), reservations: new Map([[key, credits(1)]]) })
        assert.deepStrictEqual(yield* both, [false, true])
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("is released after 24 hours, whatever went wrong", () => {
    const { layer, orphansBefore } = make()
    return Effect.gen(function* () {
      yield* Metering
      yield* TestClock.adjust("1 minute")
      const dayBefore = DateTime.subtract(yield* DateTime.now, { hours: 24 })
      assert.deepStrictEqual(orphansBefore.at(-1), dayBefore)
    }).pipe(Effect.provide(layer))
  })
})
