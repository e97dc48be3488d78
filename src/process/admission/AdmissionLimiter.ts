import { isWithinShare } from "../../domain/shares/FairShares.ts"
import { AdaptiveLimit } from "./AdaptiveLimit.ts"
import type { AdaptiveBounds } from "./AdaptiveLimit.ts"

export interface AdmissionBounds {
  /** Limits the requests admitted in one turn of the event loop, by the duration of turns. */
  readonly turn: AdaptiveBounds
  /** Limits the work in hand, by the duration of operations on the store. */
  readonly store: AdaptiveBounds
}

/** The work in hand of one caller. */
interface Caller {
  operations: number
  /** Admissions and started operations in the turn of this number. */
  admitted: number
  begun: number
  turn: number
}

/**
 * The part of the limit that a single caller may use. The rest is reserved for other callers, so that they are admitted
 * while it is refused.
 */
const aloneMax = 3 / 4
const capacityOf = (limit: number): number => Math.ceil(limit / aloneMax)

/** How often callers without work are forgotten, in milliseconds. */
const forgetMillis = 1000

/**
 * Limits how much work of one kind waits for this process, and divides it fairly among callers. Work in hand is what
 * was admitted in the current turn of the event loop, plus running operations on the store. A request that waits for a
 * vendor, for its client or for the end of a task is not in hand. Turns have a separate limit, because a request waits
 * for several of them. O(1); the caller passes the time. ADR 0207, 0277.
 */
export class AdmissionLimiter {
  readonly #turn: AdaptiveLimit
  readonly #store: AdaptiveLimit
  readonly #callers = new Map<string, Caller>()
  #forgotAt = -Infinity
  #turns = 0
  /** Running operations. */
  #operations = 0
  /** Admissions and started operations since the last turn of the event loop. */
  #admitted = 0
  #begun = 0
  #refused = 0

  constructor({ store, turn }: AdmissionBounds) {
    this.#turn = new AdaptiveLimit(turn)
    this.#store = new AdaptiveLimit(store)
  }

  /** `false`: the request must be refused at once. */
  admit(name: string): boolean {
    const inHand = this.#inHand
    const caller = this.#callerOf(name)
    if (!this.#isWithinShares(caller, inHand)) {
      this.#refused += 1
      this.#turn.refused()
      this.#store.refused()
      return false
    }
    caller.admitted += 1
    this.#admitted += 1
    this.#turn.admitted(this.#admitted)
    this.#store.admitted(inHand + 1)
    return true
  }

  /** Starts an operation that only this process or its store can delay. */
  begin(name: string): void {
    const caller = this.#callerOf(name)
    caller.operations += 1
    caller.begun += 1
    this.#operations += 1
    this.#begun += 1
  }

  end(name: string, nowMillis: number, tookMillis: number): void {
    this.#callerOf(name).operations -= 1
    this.#operations -= 1
    this.#store.record(nowMillis, 1, tookMillis, this.#inHand)
  }

  /** Records that the loop has handled all requests read in this turn, and how long that took. */
  turn(nowMillis: number, tookMillis: number): void {
    this.#turn.record(nowMillis, this.#admitted, tookMillis, 0)
    this.#turns += 1
    this.#admitted = 0
    this.#begun = 0
    this.#store.record(nowMillis, 0, 0, this.#operations)
    if (nowMillis - this.#forgotAt > forgetMillis) this.#forget(nowMillis)
  }

  #isWithinShares(caller: Caller, inHand: number): boolean {
    const leftOfTurn = capacityOf(this.#turn.limit) - this.#admitted - 1
    const leftOfStore = capacityOf(this.#store.limit) - inHand - 1
    return (
      isWithinShare(aloneMax, { before: caller.admitted, left: leftOfTurn, places: 1 }) &&
      isWithinShare(aloneMax, { before: inHandOf(caller), left: leftOfStore, places: 1 })
    )
  }

  /** Running operations and the work admitted in this turn, whether or not it has started an operation. */
  get #inHand(): number {
    return this.#operations + Math.max(0, this.#admitted - this.#begun)
  }

  #callerOf(name: string): Caller {
    let caller = this.#callers.get(name)
    if (caller === undefined) {
      caller = { operations: 0, admitted: 0, begun: 0, turn: this.#turns }
      this.#callers.set(name, caller)
    }
    if (caller.turn !== this.#turns) {
      caller.turn = this.#turns
      caller.admitted = 0
      caller.begun = 0
    }
    return caller
  }

  #forget(nowMillis: number): void {
    this.#forgotAt = nowMillis
    for (const [name, { operations }] of this.#callers) {
      if (operations === 0) this.#callers.delete(name)
    }
  }

  /** The number of callers that are remembered. */
  get callers(): number {
    return this.#callers.size
  }

  /** The maximum work in hand of one caller. */
  get limit(): number {
    return Math.min(this.#turn.limit, this.#store.limit)
  }

  /** The average duration of a turn plus that of an operation, in milliseconds. */
  get delay(): number {
    return this.#turn.delay + this.#store.delay
  }

  /** The number of refusals since the last call. */
  takeRefused(): number {
    const refused = this.#refused
    this.#refused = 0
    return refused
  }
}

const inHandOf = ({ admitted, begun, operations }: Caller): number =>
  operations + Math.max(0, admitted - begun)
