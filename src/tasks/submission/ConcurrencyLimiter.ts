import { Context, DateTime, Effect, Layer } from "effect"
import { Batcher } from "../../db/Batcher.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { slotServeSecondsMax } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import type { SlotLimit } from "../../vendors/VendorClient.ts"
import { TaskInbox } from "../running/TaskInbox.ts"
import { ConcurrencySlotStore } from "./ConcurrencySlotStore.ts"
import type { SlotQueueState, SlotRequest } from "./ConcurrencySlotStore.ts"

/** A concurrency limit, and the account to which a task with a slot is submitted. */
export interface AccountLimit extends SlotLimit {
  readonly accountId: string
}

interface Take {
  readonly request: SlotRequest
  readonly limit: AccountLimit
}

/** The maximum number of slots that one statement gives out. */
const slotsPerTakeMax = 100

/**
 * Limits the jobs that run at a vendor at once, over all processes, oldest task first. A slot belongs to the task's
 * run: it is released by the transaction that ends the task or records a refused submit. ADR 0108.
 */
export class ConcurrencyLimiter extends Context.Service<
  ConcurrencyLimiter,
  {
    /** Takes a slot of the account. A task that gets none is no longer in hand: it waits in the store for a slot. */
    readonly take: (
      request: SlotRequest,
      limit: AccountLimit
    ) => Effect.Effect<"Held" | "Waits" | "Ending">
    /** Announces that slots may be free, because a task has ended or its submit was refused. */
    readonly notifyReleased: Effect.Effect<void>
    /**
     * Gives free slots to waiting tasks, if there may be any, and returns whether tasks still wait. If so, call it
     * again later, because processes do not notify each other of released slots.
     */
    readonly serve: Effect.Effect<boolean, StoreUnavailable>
    /** For `/metrics`. */
    readonly queues: Effect.Effect<ReadonlyArray<SlotQueueState>, StoreUnavailable>
  }
>()("gateway/tasks/submission/ConcurrencyLimiter") {
  static readonly layer = Layer.effect(
    ConcurrencyLimiter,
    Effect.gen(function* () {
      const inbox = yield* TaskInbox
      const store = yield* ConcurrencySlotStore
      /** Whether tasks are waiting for slots, as far as this process knows. */
      let areWaiting = false
      let joined = false
      let servedAt = Number.NEGATIVE_INFINITY

      /** Requests that arrive together share one statement per limit and account: protocols may share a limit. */
      const takes = yield* Batcher.make({
        itemsMax: slotsPerTakeMax,
        runsMax: 1,
        run: Effect.fnUntraced(function* (asked: ReadonlyArray<Take>) {
          const now = yield* DateTime.now
          const held = new Map<TaskId, boolean>()
          const byAccount = Map.groupBy(asked, ({ limit }) => `${limit.line} ${limit.accountId}`)
          for (const takers of byAccount.values()) {
            const [first] = takers
            if (first === undefined) continue
            const requests = takers.map(({ request }) => request)
            const taken = yield* store.take({ ...first.limit, requests, now })
            for (const slot of taken) held.set(slot.taskId, slot.held)
          }
          return asked.map(({ request }) => held.get(request.taskId))
        })
      })

      return ConcurrencyLimiter.of({
        take: Effect.fnUntraced(function* (request, limit) {
          const isHeld = yield* retryStore(takes.call({ request, limit }))
          if (isHeld === undefined) return "Ending"
          if (isHeld) return "Held"
          areWaiting = true
          joined = true
          inbox.wake()
          return "Waits"
        }),
        notifyReleased: Effect.sync(() => {
          if (areWaiting) inbox.wake()
        }),
        serve: Effect.gen(function* () {
          const now = yield* DateTime.now
          const millis = DateTime.toEpochMillis(now)
          // A dead process may have left waiting tasks, so every process checks at intervals
          const isLongAgo = Math.abs(millis - servedAt) >= slotServeSecondsMax * 1000
          if (!areWaiting && !isLongAgo) return false
          servedAt = millis
          joined = false
          const { limits } = yield* store.serve(now)
          // A task that began to wait while the statement ran may not be counted
          areWaiting = limits > 0 || joined
          return areWaiting
        }),
        queues: store.queues
      })
    })
  )
}
