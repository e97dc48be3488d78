import { AdaptiveLimit } from "./AdaptiveLimit.ts"
import type { AdaptiveBounds } from "./AdaptiveLimit.ts"

export interface AdmissionBounds {
  /** Of requests that one turn of the event loop admits, by how long that turn takes. */
  readonly turn: AdaptiveBounds
  /** Of work in hand, by how long operations on the store take. */
  readonly store: AdaptiveBounds
}

/**
 * Bounds how much work of one kind waits for this process. Work in hand is what was admitted in this turn
 * of the event loop, and operations on the store: a request that waits for a vendor, its client or the end
 * of a task is none. A request waits for several turns, so that a turn has a bound of its own.
 * O(1), time is given by the caller. ADR 0207, 0249.
 */
export class AdmissionLimiter {
  readonly #turn: AdaptiveLimit
  readonly #store: AdaptiveLimit
  /** Operations under way. */
  #operations = 0
  /** Admitted, and operations begun, since the latest turn of the event loop. */
  #admitted = 0
  #begun = 0
  #refused = 0

  constructor({ store, turn }: AdmissionBounds) {
    this.#turn = new AdaptiveLimit(turn)
    this.#store = new AdaptiveLimit(store)
  }

  /** `false`: to be refused at once. */
  admit(): boolean {
    const inHand = this.#inHand
    if (this.#admitted >= this.#turn.limit || inHand >= this.#store.limit) {
      this.#refused += 1
      this.#turn.refused()
      this.#store.refused()
      return false
    }
    this.#admitted += 1
    this.#turn.admitted(this.#admitted)
    this.#store.admitted(inHand + 1)
    return true
  }

  /** Something is waited for that only this process or its store delays. */
  begin(): void {
    this.#operations += 1
    this.#begun += 1
  }

  end(nowMillis: number, tookMillis: number): void {
    this.#operations -= 1
    this.#store.took(nowMillis, 1, tookMillis, this.#inHand)
  }

  /** The loop has handled all requests that it has read in this turn, which took so long. */
  turn(nowMillis: number, tookMillis: number): void {
    this.#turn.took(nowMillis, this.#admitted, tookMillis, 0)
    this.#admitted = 0
    this.#begun = 0
    this.#store.took(nowMillis, 0, 0, this.#operations)
  }

  /** What was admitted in this turn has begun an operation in it, or has none yet. */
  get #inHand(): number {
    return this.#operations + Math.max(0, this.#admitted - this.#begun)
  }

  /** So much is admitted at once. */
  get limit(): number {
    return Math.min(this.#turn.limit, this.#store.limit)
  }

  /** Average of a turn and of an operation, together, in milliseconds. */
  get delay(): number {
    return this.#turn.delay + this.#store.delay
  }

  /** How much was refused since the call before. */
  takeRefused(): number {
    const refused = this.#refused
    this.#refused = 0
    return refused
  }
}
