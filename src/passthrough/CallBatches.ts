import { Effect, Exit } from "effect"
import type { Scope } from "effect"
import { isDefect, runBatch } from "../db/Batcher.ts"
import type { BatchRun } from "../db/Batcher.ts"
import { zero } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { makeFiberPlaces } from "../process/Places.ts"
import type { CallEnd, CallRefusal, CallStart } from "./CallStore.ts"

/** What goes into one transaction. */
export interface Batch {
  readonly starts: ReadonlyArray<CallStart>
  readonly ends: ReadonlyArray<CallEnd>
}

/** Commits a batch; answers which of its calls may not go upstream. Safe to repeat. */
export type WriteBatch = (
  batch: Batch
) => Effect.Effect<ReadonlyMap<string, CallRefusal>, StoreUnavailable>

export interface CallBatches {
  /** Holds for a call; `answer` hears of the commit and must not throw. Answers what gives it up. */
  readonly openUnsafe: (
    start: CallStart,
    answer: (exit: Exit.Exit<CallRefusal | undefined, StoreUnavailable>) => void
  ) => () => void
  /** Settles soon, whatever happens: never waits, never fails. */
  readonly closeUnsafe: (end: CallEnd) => void
}

/**
 * Of each kind in one transaction at most: what a batch costs by itself is spread, and while Postgres
 * is at one batch this process is at the calls of another (bench/README.md).
 */
const callsPerBatchMax = 48

/** How long an ending waits for a beginning to share its commit. */
const companyMillis = 2

/** The waits of endings while the store is away: from 100 ms, twice as long each time. */
const retryMillisMax = 5000
export const retryMillis = (failures: number) => Math.min(retryMillisMax, 50 * 2 ** failures)

type Written = Exit.Exit<ReadonlyMap<string, CallRefusal>, StoreUnavailable>

interface Opening {
  readonly start: CallStart
  readonly answer: (exit: Exit.Exit<CallRefusal | undefined, StoreUnavailable>) => void
  abandoned: boolean
}

interface Taken {
  readonly openings: ReadonlyArray<Opening>
  readonly ends: ReadonlyArray<CallEnd>
}

/** Nothing was bought, or the upstream failed. */
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
  /** The endings have waited long enough. */
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

  /** Endings alone wait a moment for company, or until the store may be back. */
  flushDue(then: () => void): void {
    if (this.#ends.length === 0 || this.#due || this.#timer !== undefined) return
    const millis = this.#failures === 0 ? companyMillis : retryMillis(this.#failures)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#due = true
      then()
    }, millis)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  answer({ ends, openings }: Taken, exit: Written): void {
    this.#failures = Exit.isSuccess(exit) ? 0 : this.#failures + 1
    if (Exit.isFailure(exit)) this.#ends.unshift(...ends)
    for (const opening of openings) {
      // After an unseen commit too: what was never held is passed over by the settlement.
      if (opening.abandoned || Exit.isFailure(exit)) this.close(released(opening.start))
      // Nobody waits for it any more: it must not go upstream.
      if (opening.abandoned) continue
      opening.answer(Exit.map(exit, (refused) => refused.get(opening.start.id)))
    }
  }
}

/**
 * Gathers what concurrent calls have to write: an idle store takes a beginning at once; what arrives
 * while a transaction is under way goes into the next one, endings and beginnings together, so that
 * a call costs one place in one commit and not two commits. An ending alone waits a moment for a
 * beginning. ADR 0100.
 */
export const makeCallBatches = Effect.fnUntraced(function* (
  write: WriteBatch
): Effect.fn.Return<CallBatches, never, Scope.Scope> {
  const waiting = new Waiting()
  const commit = makeCommit(waiting, write)
  let isWorking = false
  let idle: (() => void) | undefined
  const fork = yield* makeFiberPlaces

  const work = Effect.gen(function* () {
    while (true) {
      // Whoever calls in this very moment is in the same commit.
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
      writeLeft(waiting, write)
    )
  })

  return {
    openUnsafe: (start, answer) => {
      const opening: Opening = { start, answer, abandoned: false }
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

/** A batch that dies is written one by one, so that one bad row holds up no other. */
const makeCommit = (waiting: Waiting, write: WriteBatch) => {
  const options: BatchRun<Taken, ReadonlyMap<string, CallRefusal>, StoreUnavailable> = {
    run: (taken) => write(batchOf(taken)),
    split,
    onExit: (taken, exit) =>
      isDefect(exit)
        ? Effect.andThen(
            Effect.sync(() => waiting.answer({ ...taken, ends: [] }, exit)),
            Effect.logError(`Call ${idOf(taken)} could not be written`, exit.cause)
          )
        : Effect.sync(() => waiting.answer(taken, exit))
  }
  return (taken: Taken) => runBatch(taken, options)
}

/**
 * What is left when the service stops is settled before the store is closed; what cannot be is
 * released by the sweep of another process.
 */
const writeLeft = Effect.fnUntraced(function* (waiting: Waiting, write: WriteBatch) {
  while (true) {
    const ends = waiting.takeEnds()
    if (ends.length === 0) return
    const exit = yield* Effect.exit(write({ starts: [], ends }))
    if (Exit.isFailure(exit))
      yield* Effect.logError(`${ends.length} calls are left open`, exit.cause)
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
