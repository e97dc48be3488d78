import { Context, Deferred, Duration, Effect, Exit, Latch, Layer } from "effect"
import { retryStore } from "../../db/RetryStore.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { slotQueueTasksMax, slotRecheckSeconds } from "../../domain/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { Process } from "../../process/Process.ts"
import { startServing } from "../../process/Served.ts"
import type { Served } from "../../process/Served.ts"
import type { SlotLimit } from "../../vendors/VendorClient.ts"
import { ConcurrencySlotStore } from "./ConcurrencySlotStore.ts"
import type { LineState } from "./ConcurrencySlotStore.ts"

/** A task that this process owns, by the epoch of its owning. */
export interface SlotTaker {
  readonly taskId: TaskId
  readonly epoch: number
}

/**
 * Keeps the jobs that run at a vendor at once within a limit, over all processes, oldest task first.
 * A slot belongs to the task's run: it is given back by the transaction that ends the task, or by the
 * record of a refused submit. ADR 0108.
 */
export class ConcurrencyLimiter extends Context.Service<
  ConcurrencyLimiter,
  {
    /** Waits until the task holds a slot of the line. Who is interrupted (cancel, deadline) takes none. */
    readonly take: (taker: SlotTaker, limit: SlotLimit) => Effect.Effect<void>
    /** A task has ended or its submit was refused: its slot may be free. */
    readonly lookAgain: Effect.Effect<void>
    /** For `/metrics`. */
    readonly lines: Effect.Effect<ReadonlyArray<LineState>, StoreUnavailable>
  }
>()("gateway/tasks/submission/ConcurrencyLimiter") {
  static readonly layer = Layer.effect(
    ConcurrencyLimiter,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const lanes = new Map<string, Lane>()
      const store = yield* ConcurrencySlotStore
      const serve = serveWith(store, (yield* Process).id)

      const laneOf = (limit: SlotLimit): Lane => {
        const known = lanes.get(limit.line)
        if (known !== undefined) return known
        const lane: Lane = { limit, bell: Latch.makeUnsafe(), waiting: new Map(), isServed: false }
        lanes.set(limit.line, lane)
        return lane
      }

      return ConcurrencyLimiter.of({
        take: ({ epoch, taskId }, limit) =>
          Effect.suspend(() => {
            const lane = laneOf(limit)
            const turn: Deferred.Deferred<void> = Deferred.makeUnsafe()
            const waiter: Waiter = { epoch, turn, hasJoined: false }
            lane.waiting.set(taskId, waiter)
            const left = Effect.sync(() => {
              if (lane.waiting.get(taskId) === waiter) lane.waiting.delete(taskId)
            })
            lane.bell.openUnsafe()
            return startServing(lane, serve, scope).pipe(
              Effect.andThen(Deferred.await(turn)),
              Effect.onInterrupt(() => left)
            )
          }),
        lookAgain: Effect.sync(() => {
          for (const { bell } of lanes.values()) bell.openUnsafe()
        }),
        lines: store.lines
      })
    })
  )
}

interface Waiter {
  readonly epoch: number
  readonly turn: Deferred.Deferred<void>
  hasJoined: boolean
}

/** Those of this process who wait in one line. */
interface Lane extends Served {
  readonly limit: SlotLimit
  /** Rings when a slot may be free, or somebody new waits. */
  readonly bell: Latch.Latch
  readonly waiting: Map<TaskId, Waiter>
}

/** Who has not joined yet; no more than one statement is to carry. */
const joiningOf = (lane: Lane): ReadonlyArray<SlotTaker> =>
  [...lane.waiting]
    .filter(([, { hasJoined }]) => !hasJoined)
    .slice(0, slotQueueTasksMax)
    .map(([taskId, { epoch }]) => ({ taskId, epoch }))

/** Looks until nobody waits, then ends: an idle lane costs nothing. */
const serveWith = (store: ConcurrencySlotStore["Service"], owner: string) =>
  Effect.fnUntraced(function* (lane: Lane) {
    while (lane.waiting.size > 0) {
      // From here on it rings again
      lane.bell.closeUnsafe()
      const joining = joiningOf(lane)
      const { joined, held } = yield* retryStore(store.take({ ...lane.limit, owner, joining }))
      for (const taskId of joined) {
        const waiter = lane.waiting.get(taskId)
        if (waiter !== undefined) waiter.hasJoined = true
      }
      for (const taskId of held) {
        const waiter = lane.waiting.get(taskId)
        if (waiter?.hasJoined !== true) continue
        lane.waiting.delete(taskId)
        yield* Deferred.done(waiter.turn, Exit.void)
      }
      const isAllTold = joined.length < joining.length || joiningOf(lane).length === 0
      if (lane.waiting.size > 0 && isAllTold) {
        // Slots that another process gave back are seen by looking
        yield* Effect.raceFirst(lane.bell.await, Effect.sleep(Duration.seconds(slotRecheckSeconds)))
      }
    }
    // In the same breath as the look above: who comes next starts the lane again
    lane.isServed = false
  })
