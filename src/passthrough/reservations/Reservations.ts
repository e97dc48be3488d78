import { Clock, Effect, Exit, Latch } from "effect"
import type { Scope } from "effect"
import { isDefect, runBatch } from "../../db/Batcher.ts"
import * as Credits from "../../domain/Credits.ts"
import { makeCallId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { storeRetryMillis } from "../../domain/Retries.ts"
import { makeLastTries } from "../CallBatches.ts"
import type { GraceEnd } from "../CallBatches.ts"
import type { CallStart } from "../CallStore.ts"
import { ReservationBook, costOf } from "./ReservationBook.ts"
import type { Drawn, Taken } from "./ReservationBook.ts"
import type { ReservationGrant, ReservationSize, DrawnCall } from "./ReservationStore.ts"

/** Writes a batch and returns the grants. Safe to repeat. */
export type WriteReservations = (
  batch: Pick<Taken, "sizes" | "ended">
) => Effect.Effect<ReadonlyArray<ReservationGrant>, StoreUnavailable>

/** Calls that need no separate commit before they go upstream. */
export interface Reservations {
  /**
   * Covers a starting call. `close` settles it soon, once; it never waits and never fails. `undefined`: the call
   * needs a separate hold.
   */
  readonly drawUnsafe: (start: CallStart, nowMillis: number) => Drawn | undefined
  /** The maximum cost of a key's running calls. */
  readonly running: (key: string) => bigint
}

/** The pause between two writes. Reservations that fall due in the meantime share a commit. */
const roundMillis = 10

/**
 * Keeps reservations for keys that call often, and settles the calls drawn on them. ADR 0116. Does not use `Batcher`,
 * because the book adds up the needs of each key and no caller waits for a write.
 */
export const makeReservations = Effect.fnUntraced(function* (
  write: WriteReservations,
  graceEnd: GraceEnd
): Effect.fn.Return<Reservations, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const monotonic = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const now = () => ({ monotonic: monotonic(), wall: clock.currentTimeMillisUnsafe() })
  const newId = () => makeCallId(clock.currentTimeMillisUnsafe())
  const book = new ReservationBook()
  const commit = makeCommit(book, write, newId)
  const busy = yield* Latch.make()

  const round = Effect.fnUntraced(function* (failures: number) {
    if (book.isEmpty) {
      yield* busy.close
      yield* busy.await
    }
    yield* Effect.sleep(failures === 0 ? roundMillis : storeRetryMillis(failures))
    const taken = book.take(now(), newId)
    if (taken === undefined) return 0
    return (yield* Effect.uninterruptible(commit(taken))) ? 0 : failures + 1
  })
  const rounds = Effect.gen(function* () {
    let failures = 0
    while (true) failures = yield* round(failures)
  })
  // Writes the rest when the service stops; another process releases what cannot be written
  const writeRest = Effect.fnUntraced(function* () {
    const tryAgain = yield* makeLastTries(graceEnd)
    while (true) {
      const taken = book.take(now(), newId, true)
      if (taken === undefined) return
      if (!(yield* commit(taken)) && !(yield* tryAgain)) return
    }
  })
  yield* Effect.addFinalizer(() => writeRest())
  yield* Effect.forkScoped(rounds)

  return {
    running: (key) => book.running(key),
    drawUnsafe: (start, nowMillis) => {
      const drawn = book.draw(start, { monotonic: monotonic(), wall: nowMillis })
      if (!book.isEmpty) busy.openUnsafe()
      return drawn
    }
  }
})

/** Returns whether everything was written. Writes a batch that dies call by call. */
const makeCommit =
  (book: ReservationBook, write: WriteReservations, newId: () => string) =>
  (batch: Taken): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      let isWritten = true
      const written = runBatch(batch, {
        run: write,
        split: (taken) => split(taken, newId),
        onExit: (taken, exit) => {
          if (Exit.isSuccess(exit)) return Effect.sync(() => book.written(taken, exit.value))
          isWritten = false
          if (!isDefect(exit)) return Effect.sync(() => book.failed(taken))
          book.dropped(taken)
          const id = taken.ended[0]?.start.id ?? taken.sizes[0]?.key
          return Effect.logError(`Reservation or call ${id} could not be written`, exit.cause)
        }
      })
      return Effect.map(written, () => isWritten)
    })

/** Splits a batch into one batch per call, each with the size of its key, and one per remaining key. */
const split = ({ at, ended, sizes }: Taken, newId: () => string): ReadonlyArray<Taken> => {
  if (ended.length + sizes.length <= 1 || (ended.length === 1 && sizes.length === 1)) return []
  // Each write creates a new hold, which must also cover the calls written after it
  const sized = (size: ReservationSize, later: ReadonlyArray<DrawnCall>): ReservationSize => {
    const cost = costOf(later.filter(({ start }) => start.key === size.key))
    return { ...size, hold: newId(), needs: Credits.make(size.needs + cost) }
  }
  return [
    ...ended.map((one, n) => ({
      at,
      ended: [one],
      sizes: sizes
        .filter(({ key }) => key === one.start.key)
        .map((size) => sized(size, ended.slice(n + 1)))
    })),
    ...sizes.map((size) => ({ at, ended: [], sizes: [sized(size, [])] }))
  ]
}
