import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import type { CallEnd, CallStart } from "../../../src/passthrough/CallStore.ts"
import type { CloseDrawn } from "../../../src/passthrough/reservations/ReservationBook.ts"
import { makeReservations } from "../../../src/passthrough/reservations/Reservations.ts"
import type { WriteReservations } from "../../../src/passthrough/reservations/Reservations.ts"
import { callEnd, callStart, credits, grantAll } from "../../support/wallets.ts"

/** A process's reservations for keys with frequent calls, with the test's clock. ADR 0116. */

const user = UserId.make(randomUUID())
type Batch = Parameters<WriteReservations>[0]

const make = Effect.fnUntraced(function* (
  behave: WriteReservations = (batch) => Effect.succeed(grantAll(batch.sizes))
) {
  const written: Array<Batch> = []
  const scope = yield* Scope.make()
  const write = (batch: Batch) =>
    Effect.suspend(() => {
      written.push(batch)
      return behave(batch)
    })
  const reservations = yield* Scope.provide(
    makeReservations(write, () => -Infinity),
    scope
  )
  const clock = yield* Clock.Clock
  const closes = new Map<string, CloseDrawn>()
  const draw = (start: CallStart) => {
    const drawn = reservations.drawUnsafe(start, clock.currentTimeMillisUnsafe())
    if (drawn !== undefined) closes.set(start.id, drawn.close)
    return drawn !== undefined
  }
  const close = (end: CallEnd) => closes.get(end.id)?.(end)
  /** Makes so many calls that the key has a reservation afterwards. */
  const callOften = Effect.suspend(() => {
    for (let n = 0; n < 20; n += 1) draw(callStart(user, 1))
    return TestClock.adjust("10 millis")
  })
  return { close, draw, callOften, stop: Scope.close(scope, Exit.void), written }
})

const sizesOf = (batches: ReadonlyArray<Batch>) =>
  batches.map(({ sizes }) => sizes.map(({ extra, needs }) => [needs, extra]))
const endsOf = (batches: ReadonlyArray<Batch>) =>
  batches.map(({ ended }) => ended.map(({ start }) => start.id))

describe("the reservation of a key that calls often", () => {
  it.effect("fifteen calls within a second are held one by one, and the sixteenth opens it", () =>
    Effect.gen(function* () {
      const { draw, stop, written } = yield* make()
      for (let second = 0; second < 3; second += 1) {
        for (let n = 0; n < 15; n += 1) assert.isFalse(draw(callStart(user, 1)))
        yield* TestClock.adjust("1 second")
      }
      assert.isEmpty(written)
      for (let n = 0; n < 16; n += 1) assert.isFalse(draw(callStart(user, 2)))
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(sizesOf(written), [[[credits(0), credits(8)]]])
      assert.isTrue(draw(callStart(user, 8)))
      assert.isFalse(draw(callStart(user, 1)))
      yield* stop
    })
  )

  it.effect(
    "ended calls are settled together 30 ms later; after 50 idle ms nothing is reserved",
    () =>
      Effect.gen(function* () {
        const { close, draw, callOften, stop, written } = yield* make()
        yield* callOften
        const [one, two, long] = [callStart(user, 1), callStart(user, 1), callStart(user, 1)]
        for (const start of [one, two, long]) assert.isTrue(draw(start))
        close(callEnd(one, 1))
        close(callEnd(two, 0))
        yield* TestClock.adjust("20 millis")
        assert.lengthOf(written, 1)
        yield* TestClock.adjust("10 millis")
        assert.deepStrictEqual(endsOf(written.slice(1)), [[one.id, two.id]])
        yield* TestClock.adjust("1 second")
        // Only the running call is held
        assert.deepStrictEqual(sizesOf(written.slice(2)), [[[credits(1), credits(0)]]])
        close(callEnd(long, 1))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(endsOf(written.slice(3)), [[long.id]])
        assert.deepStrictEqual(sizesOf(written.slice(3)), [[[credits(0), credits(0)]]])
        assert.isFalse(draw(callStart(user, 1)), "it is closed")
        yield* stop
        assert.strictEqual(written.length, 4)
      })
  )

  it.effect("a key that was not checked for 100 ms, or is revoked, is not drawn on", () =>
    Effect.gen(function* () {
      let alive = true
      let isThere = true
      const { draw, callOften, stop } = yield* make((batch) =>
        isThere
          ? Effect.succeed(grantAll(batch.sizes, { alive }))
          : Effect.fail(new StoreUnavailable({ cause: undefined }))
      )
      yield* callOften
      isThere = false
      for (let n = 0; n < 9; n += 1) {
        yield* TestClock.adjust("11 millis")
        assert.isTrue(draw(callStart(user, 1)), `${(n + 1) * 11} ms`)
      }
      yield* TestClock.adjust("1 millis")
      assert.isFalse(draw(callStart(user, 1)))
      isThere = true
      yield* TestClock.adjust("5 seconds")
      draw(callStart(user, 1))
      yield* TestClock.adjust("10 millis")
      assert.isTrue(draw(callStart(user, 1)), "the store is back")
      alive = false
      yield* TestClock.adjust("30 millis")
      assert.isFalse(draw(callStart(user, 1)))
      yield* stop
    })
  )

  it.effect(
    "ended calls are kept while the store is unavailable, and written when the service stops",
    () =>
      Effect.gen(function* () {
        let isThere = true
        const { close, draw, callOften, stop, written } = yield* make((batch) =>
          isThere
            ? Effect.succeed(grantAll(batch.sizes))
            : Effect.fail(new StoreUnavailable({ cause: undefined }))
        )
        yield* callOften
        const [one, two] = [callStart(user, 1), callStart(user, 1)]
        draw(one)
        draw(two)
        isThere = false
        close(callEnd(one, 1))
        yield* TestClock.adjust("1 minute")
        const tries = endsOf(written).filter((ids) => ids.includes(one.id)).length
        assert.isAbove(tries, 5)
        assert.isBelow(tries, 30)
        close(callEnd(two, 1))
        isThere = true
        yield* stop
        const last = written.at(-1)!
        assert.deepStrictEqual(endsOf([last]), [[one.id, two.id]])
        assert.deepStrictEqual(sizesOf([last]), [[[credits(0), credits(0)]]])
      })
  )

  it.effect("what is left when the service stops waits for a store that is away for a moment", () =>
    Effect.gen(function* () {
      let left = Number.POSITIVE_INFINITY
      const { close, draw, callOften, stop, written } = yield* make((batch) =>
        (left -= 1) < 0
          ? Effect.succeed(grantAll(batch.sizes))
          : Effect.fail(new StoreUnavailable({ cause: undefined }))
      )
      left = 0
      yield* callOften
      const one = callStart(user, 1)
      draw(one)
      close(callEnd(one, 1))
      left = 3
      yield* stop
      assert.isBelow(left, 0)
      assert.isTrue(endsOf(written).at(-1)?.includes(one.id))
    })
  )

  it.effect(
    "a reservation of a spend limit's last period ends with its calls, and a new one is opened",
    () =>
      Effect.gen(function* () {
        const midnight = DateTime.makeUnsafe(86_400_000)
        let isPast = false
        const { close, draw, callOften, stop, written } = yield* make((batch) =>
          Effect.succeed(
            grantAll(batch.sizes).map(({ available, granted, key }) => ({
              key,
              granted,
              available,
              left: null,
              alive: !isPast || granted === 0n,
              expiresAt: isPast ? null : midnight
            }))
          )
        )
        yield* TestClock.setTime(86_400_000 - 15)
        yield* callOften
        const long = callStart(user, 1)
        assert.isTrue(draw(long))
        // The period ends before the key is scanned again
        yield* TestClock.adjust("5 millis")
        assert.isFalse(draw(callStart(user, 1)))
        isPast = true
        yield* TestClock.adjust("20 millis")
        for (let n = 0; n < 5; n += 1) {
          assert.isFalse(draw(callStart(user, 1)))
          yield* TestClock.adjust("10 millis")
        }
        const sizes = sizesOf(written).flat()
        assert.deepStrictEqual(sizes.at(-1), [credits(1), credits(0)])
        close(callEnd(long, 1))
        yield* TestClock.adjust("10 millis")
        isPast = false
        assert.isFalse(draw(callStart(user, 1)))
        yield* TestClock.adjust("10 millis")
        draw(callStart(user, 1))
        yield* TestClock.adjust("10 millis")
        const [needs, extra] = sizesOf(written).flat().at(-1)!
        assert.strictEqual(needs, credits(0))
        assert.isTrue(extra! > 0n, "a new one is opened")
        yield* stop
      })
  )

  it.effect("a call that cannot be written is dropped alone", () =>
    Effect.gen(function* () {
      const [bad, good] = [callStart(user, 1), callStart(user, 1)]
      const { close, draw, callOften, stop, written } = yield* make((batch) =>
        endsOf([batch]).flat().includes(bad.id)
          ? Effect.die("broken")
          : Effect.succeed(grantAll(batch.sizes))
      )
      yield* callOften
      for (const start of [bad, good]) {
        draw(start)
        close(callEnd(start, 1))
      }
      yield* TestClock.adjust("1 second")
      const apart = endsOf(written).filter((ids) => ids.length > 0)
      assert.deepStrictEqual(apart, [[bad.id, good.id], [bad.id], [good.id]])
      // What is written after a call is covered by the hold that replaces the last one
      const [bads, goods] = written.filter(({ ended }) => ended.length === 1)
      assert.deepStrictEqual(
        [bads, goods].map((batch) => batch!.sizes.map(({ needs }) => needs)),
        [[credits(1)], [credits(0)]]
      )
      const holds = written.flatMap(({ sizes }) => sizes.map(({ hold }) => hold))
      assert.strictEqual(new Set(holds).size, written.length, "a hold is made once")
      assert.deepStrictEqual(sizesOf([written.at(-1)!]), [[[credits(0), credits(0)]]])
      yield* stop
    })
  )
})
