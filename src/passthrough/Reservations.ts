import { Clock, Effect, Exit, Latch } from "effect"
import type { Scope } from "effect"
import { isDefect, runBatch } from "../db/Batcher.ts"
import * as Credits from "../domain/Credits.ts"
import { makeCallId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { retryMillis } from "./CallBatches.ts"
import type { CallStart } from "./CallStore.ts"
import { ReservationBook, costOf } from "./ReservationBook.ts"
import type { CloseDrawn, Taken } from "./ReservationBook.ts"
import type { ReservationGrant, ReservationSize, DrawnCall } from "./ReservationStore.ts"

/** Writes a batch and answers what was granted. Safe to repeat. */
export type WriteReservations = (
  batch: Pick<Taken, "sizes" | "ended">
) => Effect.Effect<ReadonlyArray<ReservationGrant>, StoreUnavailable>

/** Calls that need no commit of their own before they go upstream. */
export interface Reservations {
  /**
   * Covers a call that begins. Answers what settles it soon, once, whatever happens: that never waits
   * and never fails. `undefined`: the call has to be held for by itself.
   */
  readonly drawUnsafe: (start: CallStart, nowMillis: number) => CloseDrawn | undefined
}

/** Pause between two writings: what gathers meanwhile shares a commit. */
const turnMillis = 10

/** Keeps the allowances of the keys that call often, and settles what is drawn on them. ADR 0116. */
export const makeReservations = Effect.fnUntraced(function* (
  write: WriteReservations
): Effect.fn.Return<Reservations, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const monotonic = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const now = () => ({ monotonic: monotonic(), wall: clock.currentTimeMillisUnsafe() })
  const newId = () => makeCallId(clock.currentTimeMillisUnsafe())
  const book = new ReservationBook()
  const commit = makeCommit(book, write, newId)
  const busy = yield* Latch.make()

  const turn = Effect.fnUntraced(function* (failures: number) {
    if (book.isEmpty) {
      yield* busy.close
      yield* busy.await
    }
    yield* Effect.sleep(failures === 0 ? turnMillis : retryMillis(failures))
    const taken = book.take(now(), newId)
    if (taken === undefined) return 0
    return (yield* Effect.uninterruptible(commit(taken))) ? 0 : failures + 1
  })
  const turns = Effect.gen(function* () {
    let failures = 0
    while (true) failures = yield* turn(failures)
  })
  // What is left when the service stops; what cannot be written is freed by another process's sweep
  const rest: Effect.Effect<void> = Effect.suspend(() => {
    const taken = book.take(now(), newId, true)
    if (taken === undefined) return Effect.void
    return Effect.flatMap(commit(taken), (isWritten) => (isWritten ? rest : Effect.void))
  })
  yield* Effect.addFinalizer(() => rest)
  yield* Effect.forkScoped(turns)

  return {
    drawUnsafe: (start, nowMillis) => {
      const close = book.draw(start, { monotonic: monotonic(), wall: nowMillis })
      if (!book.isEmpty) busy.openUnsafe()
      return close
    }
  }
})

/** Answers whether the store was there. A batch that breaks is written one by one. */
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

/** Each call by itself, with the size of its key; and the keys by themselves. */
const split = ({ at, ended, sizes }: Taken, newId: () => string): ReadonlyArray<Taken> => {
  if (ended.length + sizes.length <= 1 || (ended.length === 1 && sizes.length === 1)) return []
  // Each writing makes a hold of its own, which has to cover the calls that are written behind it too
  const sized = (size: ReservationSize, behind: ReadonlyArray<DrawnCall>): ReservationSize => {
    const cost = costOf(behind.filter(({ start }) => start.key === size.key))
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
