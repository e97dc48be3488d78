import { Effect, Exit } from "effect"
import type { Scope } from "effect"
import { isDefect, runBatch } from "../db/Batcher.ts"
import type { BatchRun } from "../db/Batcher.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { storeRetryMillis } from "../domain/Retries.ts"
import { makeFiberSlots } from "../process/SlotArray.ts"
import type { CallEnd, CallRaise, CallRefusal, CallStart } from "./CallStore.ts"

/** The contents of one transaction. */
export interface Batch {
  readonly starts: ReadonlyArray<CallStart>
  readonly raises: ReadonlyArray<CallRaise>
  readonly ends: ReadonlyArray<CallEnd>
}

/** The outcome of a hold. `undefined`: the call may go upstream, and its key has no spend limit. */
export type Held =
  | CallRefusal
  | "lost"
  | { readonly _tag: "Held"; readonly left: Credits }
  | undefined

/** The outcome of a raise. `lost`: the hold no longer exists. */
export type Raised = "held" | "lost" | CallRefusal

/** Commits a batch; returns which of its calls may not go upstream, or have a spend limit. Safe to repeat. */
export type WriteBatch = (
  batch: Batch
) => Effect.Effect<ReadonlyMap<string, Held>, StoreUnavailable>

export interface CallBatches {
  /**
   * Takes a hold for a call. `onExit` is called after the commit and must not throw. Returns a function that abandons
   * the call.
   */
  readonly openUnsafe: (
    start: CallStart,
    onExit: (exit: Exit.Exit<Held, StoreUnavailable>) => void
  ) => () => void
  /**
   * Raises the hold of a running call as soon as the store is available. `onRaised` must not throw. Returns a function
   * that cancels the raise, so that it is not retried.
   */
  readonly raiseUnsafe: (raise: CallRaise, onRaised: (raised: Raised) => void) => () => void
  /** Settles soon. Never waits and never fails. */
  readonly closeUnsafe: (end: CallEnd) => void
}

/**
 * The most calls of each kind in one transaction: enough to share the cost of a commit, and few enough that this
 * process has other calls to work on while Postgres executes the batch. ADR 0072.
 */
const callsPerBatchMax = 48

/** How long a settlement waits for a new hold to share its transaction. */
const lingerMillis = 2

type Written = Exit.Exit<ReadonlyMap<string, Held>, StoreUnavailable>

interface Opening {
  readonly start: CallStart
  readonly onExit: (exit: Exit.Exit<Held, StoreUnavailable>) => void
  abandoned: boolean
}

interface Raising {
  readonly raise: CallRaise
  readonly onRaised: (raised: Raised) => void
  abandoned: boolean
}

interface Taken {
  readonly openings: ReadonlyArray<Opening>
  readonly raisings: ReadonlyArray<Raising>
  readonly ends: ReadonlyArray<CallEnd>
}

/** The end of a call that bought nothing, or whose upstream failed. */
export const released = (
  call: { readonly id: string; readonly user: UserId },
  status: number | null = null
): CallEnd => ({
  id: call.id,
  user: call.user,
  captured: zero,
  outcome: "released",
  status,
  account: null,
  usage: null
})

/** The holds and settlements waiting to be written. */
class Waiting {
  readonly #openings: Array<Opening> = []
  readonly #raisings: Array<Raising> = []
  readonly #ends: Array<CallEnd> = []
  #failures = 0
  /** The settlements, or the retried items, have waited long enough. */
  #due = false
  #timer: NodeJS.Timeout | undefined

  open(opening: Opening): void {
    this.#openings.push(opening)
  }

  raise(raising: Raising): void {
    this.#raisings.push(raising)
  }

  close(end: CallEnd): void {
    this.#ends.push(end)
  }

  get isDue(): boolean {
    if (this.#openings.length > 0) return true
    if (this.#raisings.length > 0 && this.#failures === 0) return true
    return this.#isPatient && (this.#due || this.#isFull)
  }

  /** Something is waiting that may wait longer. */
  get #isPatient(): boolean {
    return this.#ends.length > 0 || this.#raisings.length > 0
  }

  get #isFull(): boolean {
    return this.#failures === 0 && this.#ends.length >= callsPerBatchMax
  }

  take(): Taken {
    const openings = this.#openings.splice(0, callsPerBatchMax)
    const raisings = this.#raisings.splice(0, callsPerBatchMax)
    const ends = this.takeEnds()
    if (!this.#isPatient) this.#due = false
    return { openings: openings.filter(isWanted), raisings: raisings.filter(isWanted), ends }
  }

  takeEnds(): ReadonlyArray<CallEnd> {
    return this.#ends.splice(0, callsPerBatchMax)
  }

  /** Settlements without a hold wait for a new hold or, after a failure, until the store may be available again. */
  flushDue(then: () => void): void {
    if (!this.#isPatient || this.#due || this.#timer !== undefined) return
    const millis = this.#failures === 0 ? lingerMillis : storeRetryMillis(this.#failures)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#due = true
      then()
    }, millis)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  done({ ends, openings, raisings }: Taken, exit: Written): void {
    this.#failures = Exit.isSuccess(exit) ? 0 : this.#failures + 1
    if (Exit.isFailure(exit)) {
      this.#ends.unshift(...ends)
      // Amounts are absolute, so a raise that was already committed is not applied twice
      this.#raisings.unshift(...raisings.filter(isWanted))
    } else {
      for (const { onRaised, raise } of raisings.filter(isWanted)) {
        onRaised(raisedOf(exit.value.get(raise.id)))
      }
    }
    for (const opening of openings) {
      // Even if it may have been committed: the settlement ignores a call that was never held
      if (opening.abandoned || Exit.isFailure(exit)) this.close(released(opening.start))
      // An abandoned call must not go upstream
      if (opening.abandoned) continue
      opening.onExit(Exit.map(exit, (held) => held.get(opening.start.id)))
    }
  }
}

const isWanted = ({ abandoned }: { readonly abandoned: boolean }): boolean => !abandoned

const raisedOf = (held: Held): Raised =>
  held === undefined || (typeof held === "object" && held._tag === "Held") ? "held" : held

/**
 * Batches the writes of concurrent calls. If no transaction is running, a hold is written at once. Holds, raises and
 * settlements that arrive during a transaction share the next one, so that a call costs a share of one commit instead
 * of two commits. A settlement without a hold waits briefly for one. ADR 0072.
 *
 * Does not use `Batcher`, because there are three kinds of items with separate limits, one of which waits for another,
 * two of which are kept while the store is unavailable, and the callers have no fiber.
 */
export const makeCallBatches = Effect.fnUntraced(function* (
  write: WriteBatch,
  graceEnd: GraceEnd
): Effect.fn.Return<CallBatches, never, Scope.Scope> {
  const waiting = new Waiting()
  const commit = makeCommit(waiting, write)
  let isWorking = false
  let idle: (() => void) | undefined
  const fork = yield* makeFiberSlots()

  const work = Effect.gen(function* () {
    while (true) {
      // Calls of the same turn of the event loop share the commit
      yield* Effect.yieldNow
      if (!waiting.isDue) break
      yield* commit(waiting.take())
    }
    isWorking = false
    waiting.flushDue(begin)
    idle?.()
  }).pipe(Effect.uninterruptible)

  const begin = () => {
    if (isWorking || !waiting.isDue) return
    isWorking = true
    fork(work)
  }

  yield* Effect.addFinalizer(() => {
    waiting.stop()
    return Effect.andThen(
      Effect.callback<void>((resume) => {
        idle = () => resume(Effect.void)
        if (!isWorking) idle()
      }),
      writeLeft(waiting, write, graceEnd)
    )
  })

  return {
    openUnsafe: (start, onExit) => {
      const opening: Opening = { start, onExit, abandoned: false }
      waiting.open(opening)
      begin()
      return () => {
        opening.abandoned = true
      }
    },
    raiseUnsafe: (raise, onRaised) => {
      const raising: Raising = { raise, onRaised, abandoned: false }
      waiting.raise(raising)
      if (waiting.isDue) begin()
      else waiting.flushDue(begin)
      return () => {
        raising.abandoned = true
      }
    },
    closeUnsafe: (end) => {
      waiting.close(end)
      if (waiting.isDue) begin()
      else waiting.flushDue(begin)
    }
  }
})

/** Writes a batch that dies call by call, so that only the broken call fails. */
const makeCommit = (waiting: Waiting, write: WriteBatch) => {
  const options: BatchRun<Taken, ReadonlyMap<string, Held>, StoreUnavailable> = {
    run: (taken) => write(batchOf(taken)),
    split,
    onExit: (taken, exit) =>
      isDefect(exit)
        ? Effect.andThen(
            Effect.sync(() => {
              waiting.done({ ...taken, raisings: [], ends: [] }, exit)
              for (const { onRaised } of taken.raisings.filter(isWanted)) onRaised("lost")
            }),
            Effect.logError(`Call ${idOf(taken)} could not be written`, exit.cause)
          )
        : Effect.sync(() => waiting.done(taken, exit))
  }
  return (taken: Taken) => runBatch(taken, options)
}

/** If the store is unavailable when the service stops, settlements are retried for at least this long, in real time. */
const lastTriesMillis = 10_000

/** `Drain.graceEnd`: retries continue at least until then. */
export type GraceEnd = () => number

/**
 * Waits, then returns whether to try again. Uses real time, because a test clock does not advance while a scope closes.
 */
export const makeLastTries = (graceEnd: GraceEnd) =>
  Effect.sync(() => {
    const begun = performance.now()
    let failures = 0
    return Effect.callback<boolean>((resume) => {
      failures += 1
      const millis = storeRetryMillis(failures)
      const end = Math.max(begun + lastTriesMillis, graceEnd())
      if (performance.now() + millis > end) return resume(Effect.succeed(false))
      setTimeout(() => resume(Effect.succeed(true)), millis)
    })
  })

/**
 * When the service stops, writes the remaining settlements before the store closes. Another process releases calls that
 * cannot be written.
 */
const writeLeft = Effect.fnUntraced(function* (
  waiting: Waiting,
  write: WriteBatch,
  graceEnd: GraceEnd
) {
  const tryAgain = yield* makeLastTries(graceEnd)
  while (true) {
    const ends = waiting.takeEnds()
    if (ends.length === 0) return
    const exit = yield* Effect.exit(write({ starts: [], raises: [], ends }))
    if (Exit.isSuccess(exit)) continue
    if (!isDefect(exit) && (yield* tryAgain)) ends.forEach((end) => waiting.close(end))
    else yield* Effect.logError(`${ends.length} calls are left open`, exit.cause)
  }
})

const batchOf = ({ ends, openings, raisings }: Taken): Batch => ({
  starts: openings.map(({ start }) => start),
  raises: raisings.map(({ raise }) => raise),
  ends
})

const split = ({ ends, openings, raisings }: Taken): ReadonlyArray<Taken> => [
  ...ends.map((end) => ({ openings: [], raisings: [], ends: [end] })),
  ...raisings.map((raising) => ({ openings: [], raisings: [raising], ends: [] })),
  ...openings.map((opening) => ({ openings: [opening], raisings: [], ends: [] }))
]

const idOf = ({ ends, openings, raisings }: Taken) =>
  ends[0]?.id ?? raisings[0]?.raise.id ?? openings[0]?.start.id
