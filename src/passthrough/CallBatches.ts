import { Effect, Exit } from "effect"
import type { Scope } from "effect"
import { isDefect, runBatch } from "../db/Batcher.ts"
import type { BatchRun } from "../db/Batcher.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { makeFiberSlots } from "../process/SlotArray.ts"
import type { CallEnd, CallRefusal, CallStart } from "./CallStore.ts"

/** What goes into one transaction. */
export interface Batch {
  readonly starts: ReadonlyArray<CallStart>
  readonly ends: ReadonlyArray<CallEnd>
}

/** What a hold came to; `undefined`: the call may go upstream, and its key has no spend limit. */
export type Held = CallRefusal | { readonly _tag: "Held"; readonly left: Credits } | undefined

/** Commits a batch; returns which of its calls may not go upstream, or have a spend limit. Safe to repeat. */
export type WriteBatch = (
  batch: Batch
) => Effect.Effect<ReadonlyMap<string, Held>, StoreUnavailable>

export interface CallBatches {
  /** Holds for a call. `onExit` is called after the commit and must not throw. Returns what gives the call up. */
  readonly openUnsafe: (
    start: CallStart,
    onExit: (exit: Exit.Exit<Held, StoreUnavailable>) => void
  ) => () => void
  /** Settles soon: never waits, never fails. */
  readonly closeUnsafe: (end: CallEnd) => void
}

/**
 * Of each kind in one transaction at most: enough to share the cost of a batch, and few enough that this
 * process has other calls to work on while Postgres works on a batch. ADR 0072.
 */
const callsPerBatchMax = 48

/** How long a settlement lingers for a new hold to share its transaction. */
const lingerMillis = 2

/** The waits of settlements while the store is away: from 100 ms, twice as long each time, 5 s at most. */
const retryMillisMax = 5000
export const retryMillis = (failures: number) => Math.min(retryMillisMax, 50 * 2 ** failures)

type Written = Exit.Exit<ReadonlyMap<string, Held>, StoreUnavailable>

interface Opening {
  readonly start: CallStart
  readonly onExit: (exit: Exit.Exit<Held, StoreUnavailable>) => void
  abandoned: boolean
}

interface Taken {
  readonly openings: ReadonlyArray<Opening>
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

/** What waits to be written. */
class Waiting {
  readonly #openings: Array<Opening> = []
  readonly #ends: Array<CallEnd> = []
  #failures = 0
  /** The settlements have waited long enough. */
  #due = false
  #timer: NodeJS.Timeout | undefined

  open(opening: Opening): void {
    this.#openings.push(opening)
  }

  close(end: CallEnd): void {
    this.#ends.push(end)
  }

  get isDue(): boolean {
    return this.#openings.length > 0 || (this.#ends.length > 0 && (this.#due || this.#isFull))
  }

  get #isFull(): boolean {
    return this.#failures === 0 && this.#ends.length >= callsPerBatchMax
  }

  take(): Taken {
    const openings = this.#openings.splice(0, callsPerBatchMax)
    const ends = this.takeEnds()
    if (this.#ends.length === 0) this.#due = false
    return { openings: openings.filter(({ abandoned }) => !abandoned), ends }
  }

  takeEnds(): ReadonlyArray<CallEnd> {
    return this.#ends.splice(0, callsPerBatchMax)
  }

  /** Settlements alone linger for a new hold, or wait until the store may be back. */
  flushDue(then: () => void): void {
    if (this.#ends.length === 0 || this.#due || this.#timer !== undefined) return
    const millis = this.#failures === 0 ? lingerMillis : retryMillis(this.#failures)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#due = true
      then()
    }, millis)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  done({ ends, openings }: Taken, exit: Written): void {
    this.#failures = Exit.isSuccess(exit) ? 0 : this.#failures + 1
    if (Exit.isFailure(exit)) this.#ends.unshift(...ends)
    for (const opening of openings) {
      // Also when it may have been committed: the settlement ignores a call that was never held
      if (opening.abandoned || Exit.isFailure(exit)) this.close(released(opening.start))
      // A call that was given up must not go upstream
      if (opening.abandoned) continue
      opening.onExit(Exit.map(exit, (held) => held.get(opening.start.id)))
    }
  }
}

/**
 * Gathers what concurrent calls have to write: an idle store takes a hold at once; what arrives while a
 * transaction is under way goes into the next one, settlements and holds together, so that a call costs
 * a share of one commit and not two commits. A settlement alone lingers for a hold. ADR 0072.
 *
 * No `Batcher`: it has two kinds of items with a bound each, one of which lingers and is kept when the
 * store is away, and callers without a fiber.
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
    closeUnsafe: (end) => {
      waiting.close(end)
      if (waiting.isDue) begin()
      else waiting.flushDue(begin)
    }
  }
})

/** A batch that dies is written call by call, so that only the broken call fails. */
const makeCommit = (waiting: Waiting, write: WriteBatch) => {
  const options: BatchRun<Taken, ReadonlyMap<string, Held>, StoreUnavailable> = {
    run: (taken) => write(batchOf(taken)),
    split,
    onExit: (taken, exit) =>
      isDefect(exit)
        ? Effect.andThen(
            Effect.sync(() => waiting.done({ ...taken, ends: [] }, exit)),
            Effect.logError(`Call ${idOf(taken)} could not be written`, exit.cause)
          )
        : Effect.sync(() => waiting.done(taken, exit))
  }
  return (taken: Taken) => runBatch(taken, options)
}

/** A service that stops while the store is away tries to settle for so long at least, in real time. */
const lastTriesMillis = 10_000

/** `Drain.graceEnd`: until then in any case. */
export type GraceEnd = () => number

/** Whether another try comes, after its wait. The clock of a test does not move while a scope closes. */
export const makeLastTries = (graceEnd: GraceEnd) =>
  Effect.sync(() => {
    const begun = performance.now()
    let failures = 0
    return Effect.callback<boolean>((resume) => {
      failures += 1
      const millis = retryMillis(failures)
      const end = Math.max(begun + lastTriesMillis, graceEnd())
      if (performance.now() + millis > end) return resume(Effect.succeed(false))
      setTimeout(() => resume(Effect.succeed(true)), millis)
    })
  })

/**
 * What is left when the service stops is settled before the store is closed; what cannot be written is
 * released by another process.
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
    const exit = yield* Effect.exit(write({ starts: [], ends }))
    if (Exit.isSuccess(exit)) continue
    if (!isDefect(exit) && (yield* tryAgain)) ends.forEach((end) => waiting.close(end))
    else yield* Effect.logError(`${ends.length} calls are left open`, exit.cause)
  }
})

const batchOf = ({ ends, openings }: Taken): Batch => ({
  starts: openings.map(({ start }) => start),
  ends
})

const split = ({ ends, openings }: Taken): ReadonlyArray<Taken> => [
  ...ends.map((end) => ({ openings: [], ends: [end] })),
  ...openings.map((opening) => ({ openings: [opening], ends: [] }))
]

const idOf = ({ ends, openings }: Taken) => ends[0]?.id ?? openings[0]?.start.id
