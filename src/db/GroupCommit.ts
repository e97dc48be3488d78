import { Deferred, Effect, Exit, FiberSet } from "effect"
import type { Scope } from "effect"
import type { StoreUnavailable } from "../domain/Problem.ts"

export interface GroupCommitOptions {
  /** Calls in one commit at most. */
  readonly callsMax: number
  /** Commits under way at once at most: while one waits for the disk, the next is worked on. */
  readonly commitsMax: number
}

interface Waiting<Call, Outcome> {
  readonly call: Call
  readonly answer: Deferred.Deferred<Outcome, StoreUnavailable>
  started: boolean
}

/**
 * Commits calls together that arrive together (ADR 0060): an idle store takes a call at once; while
 * commits are under way calls gather, and all that have gathered go into the next one. `run` does
 * the calls in order in one transaction and answers their outcomes in that order. When it dies, each
 * call is tried alone, so that one that cannot be written does not fail the others; when the store
 * is unavailable, all of them fail. A call that is interrupted before its commit has begun is never
 * made; afterwards its outcome is waited for.
 *
 * `db/Batch` is not this: its calls are no commits of one transaction, outlive the layer that
 * gathers them, and are never taken back.
 */
export const makeGroupCommit = Effect.fnUntraced(function* <Call, Outcome>(
  run: (calls: ReadonlyArray<Call>) => Effect.Effect<ReadonlyArray<Outcome>, StoreUnavailable>,
  { callsMax, commitsMax }: GroupCommitOptions
): Effect.fn.Return<(call: Call) => Effect.Effect<Outcome, StoreUnavailable>, never, Scope.Scope> {
  type One = Waiting<Call, Outcome>
  const waiting: Array<One> = []
  const unanswered = new Set<One>()
  let underWay = 0
  yield* Effect.addFinalizer(() =>
    Effect.forEach(unanswered, ({ answer }) => Deferred.interrupt(answer), { discard: true })
  )
  // Not in the caller's context: a transaction that is open there is none of ours.
  const fork = yield* FiberSet.makeRuntime()

  const answer = (
    batch: ReadonlyArray<One>,
    exit: Exit.Exit<ReadonlyArray<Outcome>, StoreUnavailable>
  ) =>
    Effect.sync(() => {
      for (const [index, one] of batch.entries()) {
        unanswered.delete(one)
        Deferred.doneUnsafe(one.answer, outcomeAt(exit, index))
      }
    })

  const commit = (batch: ReadonlyArray<One>): Effect.Effect<void> => {
    const runAlone = (exit: Exit.Exit<unknown, unknown>) => batch.length > 1 && isDefect(exit)
    return Effect.suspend(() => run(batch.map(({ call }) => call))).pipe(
      Effect.onExit((exit) => (runAlone(exit) ? Effect.void : answer(batch, exit))),
      Effect.exit,
      Effect.flatMap((exit) =>
        runAlone(exit)
          ? Effect.forEach(batch, (one) => commit([one]), { discard: true })
          : Effect.void
      )
    )
  }

  const work = Effect.gen(function* () {
    while (true) {
      // Whoever calls in this very moment is in the same commit.
      yield* Effect.yieldNow
      const batch = waiting.splice(0, callsMax)
      if (batch.length === 0) {
        underWay -= 1
        return
      }
      for (const one of batch) one.started = true
      yield* commit(batch)
    }
  })

  return (call) =>
    Effect.uninterruptibleMask(
      Effect.fnUntraced(function* (restore) {
        const one: One = { call, answer: Deferred.makeUnsafe(), started: false }
        waiting.push(one)
        unanswered.add(one)
        if (underWay < commitsMax) {
          underWay += 1
          fork(work)
        }
        const exit = yield* Effect.exit(restore(Deferred.await(one.answer)))
        if (one.started) return yield* Deferred.await(one.answer)
        unanswered.delete(one)
        waiting.splice(waiting.indexOf(one), 1)
        return yield* exit
      })
    )
})

/** A defect: neither the store's absence nor an interruption. */
const isDefect = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && !Exit.hasFails(exit) && !Exit.hasInterrupts(exit)

const outcomeAt = <Outcome>(
  exit: Exit.Exit<ReadonlyArray<Outcome>, StoreUnavailable>,
  index: number
): Exit.Exit<Outcome, StoreUnavailable> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
  const outcome = exit.value[index]
  return outcome === undefined
    ? Exit.die(new Error("A commit left a call without an outcome"))
    : Exit.succeed(outcome)
}
