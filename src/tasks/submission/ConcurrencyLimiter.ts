import { Context, Deferred, Duration, Effect, Exit, Latch, Layer } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { slotQueueTasksMax, slotRecheckSeconds } from "../../domain/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { Process } from "../../process/Process.ts"
import type { SlotLimit } from "../../vendors/VendorClient.ts"
import { ConcurrencySlotStore } from "./ConcurrencySlotStore.ts"
import type { SlotQueueState } from "./ConcurrencySlotStore.ts"
import { startServing } from "./Served.ts"
import type { Served } from "./Served.ts"

/** A run of a task that this process owns. */
export interface SlotRequest {
  readonly taskId: TaskId
  readonly epoch: number
}

/**
 * Limits the jobs that run at a vendor at once, over all processes, oldest task first. A slot belongs to
 * the task's run: the transaction that ends the task releases it, or the record of a refused submit.
 * ADR 0108.
 */
export class ConcurrencyLimiter extends Context.Service<
  ConcurrencyLimiter,
  {
    /** Waits until the task holds a slot. An interrupted waiter (cancel, deadline) takes none. */
    readonly acquire: (request: SlotRequest, limit: SlotLimit) => Effect.Effect<void>
    /** Slots may be free: a task has ended or its submit was refused. */
    readonly notifyReleased: Effect.Effect<void>
    /** For `/metrics`. */
    readonly queues: Effect.Effect<ReadonlyArray<SlotQueueState>, StoreUnavailable>
  }
>()("gateway/tasks/submission/ConcurrencyLimiter") {
  static readonly layer = Layer.effect(
    ConcurrencyLimiter,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const queues = new Map<string, SlotQueue>()
      const store = yield* ConcurrencySlotStore
      const serve = serveWith(store, (yield* Process).id)

      const queueOf = (limit: SlotLimit): SlotQueue => {
        const known = queues.get(limit.line)
        if (known !== undefined) return known
        const queue: SlotQueue = {
          limit,
          recheck: Latch.makeUnsafe(),
          waiting: new Map(),
          isServed: false
        }
        queues.set(limit.line, queue)
        return queue
      }

      return ConcurrencyLimiter.of({
        acquire: ({ epoch, taskId }, limit) =>
          Effect.suspend(() => {
            const queue = queueOf(limit)
            const acquired: Deferred.Deferred<void> = Deferred.makeUnsafe()
            const waiter: Waiter = { epoch, acquired, isQueued: false }
            queue.waiting.set(taskId, waiter)
            const remove = Effect.sync(() => {
              if (queue.waiting.get(taskId) === waiter) queue.waiting.delete(taskId)
            })
            queue.recheck.openUnsafe()
            return startServing(queue, serve, scope).pipe(
              Effect.andThen(Deferred.await(acquired)),
              Effect.onInterrupt(() => remove)
            )
          }),
        notifyReleased: Effect.sync(() => {
          for (const { recheck } of queues.values()) recheck.openUnsafe()
        }),
        queues: store.queues
      })
    })
  )
}

interface Waiter {
  readonly epoch: number
  readonly acquired: Deferred.Deferred<void>
  /** The store has it in the queue. */
  isQueued: boolean
}

/** The waiters of this process for one limit. */
interface SlotQueue extends Served {
  readonly limit: SlotLimit
  /** Open when a slot may be free, or a new waiter has come. */
  readonly recheck: Latch.Latch
  readonly waiting: Map<TaskId, Waiter>
}

/** The waiters that the store does not have yet, as many as one statement takes. */
const newWaiters = (queue: SlotQueue): ReadonlyArray<SlotRequest> =>
  [...queue.waiting]
    .filter(([, { isQueued }]) => !isQueued)
    .slice(0, slotQueueTasksMax)
    .map(([taskId, { epoch }]) => ({ taskId, epoch }))

/** Runs while there are waiters, then ends: an idle queue costs nothing. */
const serveWith = (store: ConcurrencySlotStore["Service"], owner: string) =>
  Effect.fnUntraced(function* (queue: SlotQueue) {
    while (queue.waiting.size > 0) {
      // Closed before the statement, so that a release during the statement opens it again
      queue.recheck.closeUnsafe()
      const joining = newWaiters(queue)
      const { joined, held } = yield* retryStore(store.take({ ...queue.limit, owner, joining }))
      for (const taskId of joined) {
        const waiter = queue.waiting.get(taskId)
        if (waiter !== undefined) waiter.isQueued = true
      }
      for (const taskId of held) {
        const waiter = queue.waiting.get(taskId)
        if (waiter?.isQueued !== true) continue
        queue.waiting.delete(taskId)
        yield* Deferred.done(waiter.acquired, Exit.void)
      }
      const isUpToDate = joined.length < joining.length || newWaiters(queue).length === 0
      if (queue.waiting.size > 0 && isUpToDate) {
        // No process notifies another of a released slot, so the store is asked again
        yield* Effect.raceFirst(
          queue.recheck.await,
          Effect.sleep(Duration.seconds(slotRecheckSeconds))
        )
      }
    }
    // In the same synchronous step as the check above, so that the next waiter starts a new fiber
    queue.isServed = false
  })
