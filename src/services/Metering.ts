import {
  Context,
  DateTime,
  Duration,
  Effect,
  Exit,
  Layer,
  Option,
  Queue,
  Schedule,
  Schema
} from "effect"
import { AppConfig } from "../Config.ts"
import { zero } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import { ownerDeadSeconds } from "../domain/Limits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { CallStore } from "../store/CallStore.ts"
import type { CallEnd, CallRefusal, CallRow, CallStart } from "../store/CallStore.ts"
import { balanceLow } from "./Events.ts"
import { Process } from "./Process.ts"
import { retryStore } from "./RetryStore.ts"
import { Wake } from "./Wake.ts"

export type { CallEnd, CallRow, CallStart } from "../store/CallStore.ts"

/** Calls of one statement at most, so that no transaction is long. */
const callsPerBatchMax = 200

/** No call lives longer than this: its hold is released, should all else have failed. */
const callHoursMax = 24

interface Opening {
  readonly start: CallStart
  readonly answer: (exit: Exit.Exit<CallRefusal | undefined, StoreUnavailable>) => void
  abandoned: boolean
}

/**
 * Money of metered calls: a hold before, a settlement after, a receipt. Concurrent calls share one
 * statement, so that a busy gateway writes a few large batches instead of thousands of small
 * transactions. Contract 6; ADR 0072.
 */
export class Metering extends Context.Service<
  Metering,
  {
    /** Holds, and checks the key once more: 1101, or 1003 when the key died since it was recognized. */
    readonly open: (start: CallStart) => Effect.Effect<void, Problem | StoreUnavailable>
    /** Settles soon, whatever happens: never waits, never fails. */
    readonly closeUnsafe: (end: CallEnd) => void
    readonly list: CallStore["Service"]["list"]
    /** Fails with 2005. */
    readonly find: (
      userId: UserId,
      id: string
    ) => Effect.Effect<CallRow, Problem | StoreUnavailable>
  }
>()("gateway/services/Metering") {
  static readonly layer = Layer.effect(
    Metering,
    Effect.gen(function* () {
      const store = yield* CallStore
      const process = yield* Process
      const closeAll = yield* makeClose
      const openings = yield* Queue.unbounded<Opening>()
      const endings = yield* Queue.unbounded<CallEnd>()
      const closeUnsafe = (end: CallEnd): void => {
        Queue.offerUnsafe(endings, end)
      }

      const openBatch = Effect.fnUntraced(function* (batch: ReadonlyArray<Opening>) {
        const now = yield* DateTime.now
        const starts = batch.map(({ start }) => start)
        const exit = yield* Effect.exit(store.open(starts, process.id, now))
        for (const opening of batch) {
          // After an unseen commit too: what was never held is passed over by the close.
          if (opening.abandoned || Exit.isFailure(exit)) closeUnsafe(released(opening.start.id))
          if (!opening.abandoned)
            opening.answer(Exit.map(exit, (refusals) => refusals.get(opening.start.id)))
        }
      })

      const takeAll = <A>(queue: Queue.Queue<A>) => Queue.takeBetween(queue, 1, callsPerBatchMax)

      // What is queued when the service stops is settled before the store is closed.
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          const left = yield* Queue.clear(endings)
          if (left.length > 0) yield* closeAll(left)
        })
      )
      yield* Effect.forkScoped(Effect.forever(takeAndWrite(takeAll(openings), openBatch)))
      yield* Effect.forkScoped(Effect.forever(takeAndWrite(takeAll(endings), closeAll)))

      const sweep = Effect.gen(function* () {
        const now = yield* DateTime.now
        const before = DateTime.subtract(now, { hours: callHoursMax })
        const orphans = yield* store.orphans(yield* process.aliveSince, before, callsPerBatchMax)
        if (orphans.length > 0) yield* closeAll(orphans.map(lost))
        if (orphans.length > 0) {
          yield* Effect.logWarning(`${orphans.length} calls were lost with their process, released`)
        }
      })
      yield* sweep.pipe(
        Effect.catchCause((cause) => Effect.logWarning("The sweep of calls failed", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(ownerDeadSeconds))),
        Effect.forkScoped
      )

      return Metering.of({
        open: (start) =>
          Effect.callback<CallRefusal | undefined, StoreUnavailable>((resume) => {
            const opening: Opening = { start, answer: resume, abandoned: false }
            Queue.offerUnsafe(openings, opening)
            return Effect.sync(() => {
              opening.abandoned = true
            })
          }).pipe(
            Effect.flatMap((refusal) =>
              refusal === undefined ? Effect.void : Effect.fail(refusalProblem(refusal))
            )
          ),
        closeUnsafe,
        list: store.list,
        find: Effect.fn("Metering.find")(function* (userId, id) {
          const found = isCallId(id) ? yield* store.find(userId, id) : Option.none<CallRow>()
          return yield* Effect.mapError(Effect.fromOption(found), () =>
            problem(2005, `There is no call ${id.slice(0, 60)}`)
          )
        })
      })
    })
  )
}

const isCallId = Schema.is(Schema.String.check(Schema.isUUID()))

const refusalProblem = (refusal: CallRefusal): Problem =>
  refusal === "balance"
    ? problem(1101, "The available balance is lower than the most that this call can cost")
    : problem(1003, "This API key was revoked or has expired")

/** Nothing was bought, or the upstream failed. */
export const released = (id: string, status: number | null = null): CallEnd => ({
  id,
  captured: zero,
  outcome: "released",
  status,
  account: null,
  usage: null
})

/** The process died before the answer was settled: in doubt for the customer. ADR 0072. */
const lost = (id: string): CallEnd => ({ ...released(id), outcome: "lost" })

/** What is taken is also written: only the wait for the next can be interrupted. */
const takeAndWrite = <A, R>(
  take: Effect.Effect<ReadonlyArray<A>>,
  write: (batch: ReadonlyArray<A>) => Effect.Effect<void, never, R>
) => Effect.uninterruptibleMask((restore) => Effect.flatMap(restore(take), write))

const makeClose = Effect.gen(function* () {
  const { balanceAlertThrottle } = yield* AppConfig
  const store = yield* CallStore
  const wake = yield* Wake
  const throttleSeconds = Duration.toSeconds(balanceAlertThrottle)
  const close = Effect.fnUntraced(function* (ends: ReadonlyArray<CallEnd>) {
    const now = yield* DateTime.now
    const alert = (wallet: Parameters<typeof balanceLow>[0]) => balanceLow(wallet, now)
    yield* wake.endpoints(yield* retryStore(store.close({ ends, alert, throttleSeconds, now })))
  })
  /** A batch that breaks is closed one by one, so that one bad row holds up no other. */
  return (ends: ReadonlyArray<CallEnd>) =>
    Effect.catchCause(close(ends), (cause) =>
      ends.length === 1
        ? Effect.logError(`Call ${ends[0]?.id} could not be settled`, cause)
        : Effect.forEach(
            ends,
            (end) =>
              Effect.catchCause(close([end]), (cause) =>
                Effect.logError(`Call ${end.id} could not be settled`, cause)
              ),
            { discard: true }
          )
    )
})
