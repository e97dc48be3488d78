import { assert, describe, it } from "@effect/vitest"
import { randomUUID } from "node:crypto"
import { UserId } from "../../../src/domain/Ids.ts"
import { ReservationBook } from "../../../src/passthrough/reservations/ReservationBook.ts"
import type { Taken } from "../../../src/passthrough/reservations/ReservationBook.ts"
import { callEnd, callStart, credits, grantAll } from "../../support/wallets.ts"

/** The amounts of a reservation, to the micro-credit. ADR 0116. */

const user = UserId.make(randomUUID())
const now = { monotonic: 0, wall: 0 }
const micro = 0.000_001

const take = (book: ReservationBook, at = now): Taken => {
  const taken = book.take(at, randomUUID)
  assert(taken !== undefined)
  return taken
}

const grant = (book: ReservationBook, size: number, left: number | null) => {
  const taken = take(book)
  const limit = left === null ? null : credits(left)
  book.written(taken, grantAll(taken.sizes, { granted: credits(size), left: limit }))
}

const draw = (book: ReservationBook, amount: number) => book.draw(callStart(user, amount), now)

/** A book whose only key has a reservation of this size. */
const reserved = (size: number, left: number | null = null) => {
  const book = new ReservationBook()
  for (let n = 0; n < 16; n += 1) draw(book, 1)
  grant(book, size, left)
  return book
}

const raised = (book: ReservationBook, from: number, to: number) => {
  const outcomes: Array<string> = []
  const drawn = draw(book, from)
  assert(drawn !== undefined)
  drawn.raise(credits(to), (outcome) => outcomes.push(outcome))
  return outcomes
}

describe("a reservation", () => {
  it("covers calls and raises up to its size, and no micro-credit more", () => {
    assert.isUndefined(draw(reserved(10), 10 + micro))
    assert.isDefined(draw(reserved(10), 10))
    assert.deepStrictEqual(raised(reserved(10), 4, 10 + micro), [])
    assert.deepStrictEqual(raised(reserved(10), 4, 10), ["held"])
  })

  it("leaves of a spend limit what its calls do not hold", () => {
    assert.strictEqual(draw(reserved(10, 5), 4)?.left, credits(11))
    assert.isUndefined(draw(reserved(10), 4)?.left)
  })

  it("refuses a raise for the spend limit if nothing is left of it, else for the balance", () => {
    for (const [left, outcome] of [
      [0, "budget"],
      [micro, "balance"],
      [null, "balance"]
    ] as const) {
      const book = reserved(10)
      const outcomes = raised(book, 4, 20)
      grant(book, 10, left)
      assert.deepStrictEqual(outcomes, [outcome])
    }
  })

  it("has room again for the cost of calls that can never be written", () => {
    const book = reserved(10)
    const start = callStart(user, 10)
    book.draw(start, now)?.close(callEnd(start, 10))
    const taken = take(book, { monotonic: 30, wall: 30 })
    assert.isUndefined(draw(book, 10))
    book.dropped(taken)
    assert.isDefined(draw(book, 10))
  })
})
