import type { Credits } from "../../domain/Credits.ts"
import { sliceTokens } from "./OutputSlices.ts"
import type { OutputSlices } from "./OutputSlices.ts"

/**
 * The outcome of a raise. `lost`: the hold is gone. `balance` and `budget`: the wallet, or the key's spend limit, does
 * not cover it.
 */
export type RaiseOutcome = "held" | "lost" | "balance" | "budget"

/** Raises the hold of a call to an amount. `onRaised` is called once, unless the call ends first. */
export type RaiseHold = (amount: Credits, onRaised: (outcome: RaiseOutcome) => void) => void

/** The next slice is requested when this much is left of the current one. */
const aheadTokens = sliceTokens / 4

interface Waiting {
  readonly tokens: number
  readonly done: (outcome: RaiseOutcome) => void
}

/**
 * The hold of one stream, which grows slice by slice. The next slice is requested before the last is used up, so that
 * only output beyond it waits. ADR 0306.
 */
export class SlicedHold {
  readonly #slices: OutputSlices
  readonly #raise: RaiseHold
  #amount: Credits
  #covered = sliceTokens
  #isAsking = false
  /** The last slice was refused. The next one is then requested only when it is needed. */
  #isRefused = false
  #waiting: Waiting | undefined

  constructor(slices: OutputSlices, amount: Credits, raise: RaiseHold) {
    this.#slices = slices
    this.#amount = amount
    this.#raise = raise
  }

  /** The amount that is held. */
  get amount(): Credits {
    return this.#amount
  }

  /** The output tokens that may pass. */
  get covered(): number {
    return this.#covered
  }

  /** Reports that this many output tokens have passed in all. */
  passed(tokens: number): void {
    if (this.#covered - tokens < aheadTokens && !this.#isRefused) {
      this.#ask(this.#covered + sliceTokens)
    }
  }

  /** Calls `done` once, when this many tokens may pass or the hold cannot grow. */
  cover(tokens: number, done: (outcome: RaiseOutcome) => void): void {
    if (tokens <= this.#covered) return done("held")
    this.#waiting = { tokens, done }
    this.#ask(tokens + sliceTokens)
  }

  #ask(tokens: number): void {
    if (this.#isAsking || this.#covered === Infinity) return
    const covered = this.#slices.isAll(tokens) ? Infinity : tokens
    const amount = this.#slices.holdFor(covered)
    // The hold already covers it, because it was taken for a more expensive model of the alias
    if (amount <= this.#amount) return this.#raised("held", this.#amount, covered)
    this.#isAsking = true
    this.#raise(amount, (outcome) => {
      this.#isAsking = false
      this.#raised(outcome, amount, covered)
    })
  }

  #raised(outcome: RaiseOutcome, amount: Credits, covered: number): void {
    this.#isRefused = outcome !== "held"
    if (outcome === "held") {
      this.#amount = amount
      this.#covered = covered
    }
    const waiting = this.#waiting
    if (waiting === undefined) return
    // The waiting event came while a smaller slice was being requested
    if (outcome === "held" && waiting.tokens > covered)
      return this.#ask(waiting.tokens + sliceTokens)
    this.#waiting = undefined
    waiting.done(outcome)
  }
}
