import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import { UserId } from "../../../src/domain/Ids.ts"
import { ReservationBook } from "../../../src/passthrough/reservations/ReservationBook.ts"
import type { CloseDrawn } from "../../../src/passthrough/reservations/ReservationBook.ts"
import { callEnd, callStart, grantAll } from "../../support/wallets.ts"

/** How often a process writes a reservation adapts to its share of the key's calls. ADR 0116. */

const roundMillis = 10
const user = UserId.make(randomUUID())

/** A process with rounds of 10 ms, over a store that grants everything. */
class Caller {
  readonly #book = new ReservationBook()
  readonly #running: Array<{
    readonly endsAt: number
    readonly id: string
    readonly end: () => void
  }> = []
  readonly #endedAt = new Map<string, number>()
  #now = 0
  /** The numbers of covered and uncovered calls. */
  drawn = 0
  uncovered = 0
  writes = 0
  /** The longest time between the end of a call and its write. */
  latest = 0

  call(millis: number): void {
    const start = callStart(user, 1)
    const drawn = this.#book.draw(start, this.#moment())
    if (drawn === undefined) {
      this.uncovered += 1
      return
    }
    this.drawn += 1
    const close: CloseDrawn = drawn.close
    const end = () => close(callEnd(start, 0.5))
    this.#running.push({ endsAt: this.#now + millis, id: start.id, end })
  }

  round(): void {
    this.#now += roundMillis
    for (const call of this.#running.splice(0)) {
      if (call.endsAt > this.#now) {
        this.#running.push(call)
        continue
      }
      this.#endedAt.set(call.id, this.#now)
      call.end()
    }
    const taken = this.#book.take(this.#moment(), randomUUID)
    if (taken === undefined) return
    this.writes += 1
    for (const { start } of taken.ended) {
      this.latest = Math.max(this.latest, this.#now - this.#endedAt.get(start.id)!)
    }
    this.#book.written(taken, grantAll(taken.sizes))
  }

  #moment() {
    return { monotonic: this.#now, wall: this.#now }
  }
}

/** This many calls per second for two seconds, spread evenly over several processes, after a first second. */
const spread = (processes: number, perSecond: number) => {
  const callers = Array.from({ length: processes }, () => new Caller())
  let due = 0
  let n = 0
  const run = (millis: number) => {
    for (let at = 0; at < millis; at += roundMillis) {
      for (due += (perSecond * roundMillis) / 1000; due >= 1; due -= 1) {
        callers[n++ % processes]!.call(5)
      }
      for (const caller of callers) caller.round()
    }
  }
  const sum = (of: (caller: Caller) => number) => callers.reduce((all, it) => all + of(it), 0)
  run(1000)
  const before = { writes: sum((it) => it.writes), uncovered: sum((it) => it.uncovered) }
  run(2000)
  return {
    perWrite: (2 * perSecond) / (sum((it) => it.writes) - before.writes),
    uncovered: sum((it) => it.uncovered) - before.uncovered
  }
}

describe("the reservation of a key adapts to the process's share of its calls", () => {
  it("calls of one busy key share writes over three processes as they do in one", () => {
    for (const perSecond of [3000, 6000]) {
      const [one, three] = [spread(1, perSecond), spread(3, perSecond)]
      assert.strictEqual(three.uncovered, 0, "every call is covered")
      assert.isAtLeast(three.perWrite, 0.9 * Math.min(32, one.perWrite), `at ${perSecond} a second`)
    }
  })

  it("a key with few calls is written every 30 ms, not every 10", () => {
    const { perWrite, uncovered } = spread(1, 300)
    assert.strictEqual(uncovered, 0)
    assert.isAtLeast(perWrite, 8)
  })

  it("a call is settled within 30 ms of its end, and a write has 32 calls or comes after 30 ms, at any pace", () => {
    const pace = fc.array(
      fc.record({ calls: fc.oneof(fc.nat(4), fc.nat(40)), millis: fc.nat(60) }),
      {
        minLength: 20,
        maxLength: 100
      }
    )
    fc.assert(
      fc.property(pace, (rounds) => {
        const caller = new Caller()
        for (let n = 0; n < 20; n += 1) caller.call(0)
        for (const { calls, millis } of rounds) {
          for (let n = 0; n < calls; n += 1) caller.call(millis)
          caller.round()
        }
        assert.isAtMost(caller.latest, 30)
        // Counts begins and ends of calls; an uncovered call is written at once
        const most = (2 * caller.drawn) / 32 + rounds.length / 3 + caller.uncovered + 2
        assert.isAtMost(caller.writes, most)
      })
    )
  })
})
