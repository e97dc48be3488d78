import { Context, DateTime, Effect, Layer, Option } from "effect"
import { batchAdapterOf } from "../../catalog/CatalogContent.ts"
import { batchIdOf, taskOfBatch } from "../../domain/Ids.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import { Router } from "../creation/Router.ts"
import { idempotencySince } from "../creation/TaskAcceptance.ts"
import type { AcceptRequest } from "../creation/TaskAcceptance.ts"
import { replayOf, TaskCreation } from "../creation/TaskCreation.ts"
import type { Created, PricedOrder } from "../creation/TaskCreation.ts"
import { TaskStore } from "../TaskStore.ts"
import { VendorBatchStore } from "./VendorBatchStore.ts"
import type { ReceiptPage, ReceiptRow, VendorBatchRow } from "./VendorBatchStore.ts"

export type { ReceiptRow, VendorBatchRow } from "./VendorBatchStore.ts"

type Failure = Problem | StoreUnavailable

/** Batches of requests to a language model, each one task. docs/reference/vendor-batches.md, ADR 0300 */
export class VendorBatches extends Context.Service<
  VendorBatches,
  {
    /** No key of the vendor is configured: the simulator answers. */
    readonly isSandbox: (vendor: string) => boolean
    /** Fails as `TaskCreation` does, and as `plan` does. A repeat gets the first response, and plans nothing. */
    readonly create: (
      request: Pick<AcceptRequest, "idempotency" | "principal">,
      sandbox: boolean,
      plan: Effect.Effect<PricedOrder, Failure>
    ) => Effect.Effect<Created, Failure>
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: string) => Effect.Effect<VendorBatchRow, Failure>
    readonly list: VendorBatchStore["Service"]["list"]
    /** What its requests were charged, in the order of their digests; no other task has any. Fails with 2005. */
    readonly receipts: (
      userId: UserId,
      id: TaskId,
      page: ReceiptPage
    ) => Effect.Effect<ReadonlyArray<ReceiptRow>, Failure>
    /** Cancels it at the vendor, and returns at once. Fails with 2005, and with 2010 if it has ended. */
    readonly cancel: (userId: UserId, id: string) => Effect.Effect<VendorBatchRow, Failure>
  }
>()("gateway/tasks/VendorBatches") {
  static readonly layer = Layer.effect(
    VendorBatches,
    Effect.gen(function* () {
      const creation = yield* TaskCreation
      const router = yield* Router
      const store = yield* VendorBatchStore
      const tasks = yield* TaskStore
      const vendors = yield* VendorClient

      const find = Effect.fnUntraced(function* (userId: UserId, id: TaskId) {
        const found = yield* store.find(userId, id)
        return Option.isSome(found) ? found.value : yield* noBatch(batchIdOf(id))
      })

      const get = Effect.fnUntraced(function* (userId: UserId, id: string) {
        const taskId = taskOfBatch(id)
        return Option.isSome(taskId) ? yield* find(userId, taskId.value) : yield* noBatch(id)
      })

      return VendorBatches.of({
        isSandbox: (vendor) => {
          const adapter = batchAdapterOf(vendor)
          return adapter !== undefined && vendors.isSandbox(adapter)
        },
        create: Effect.fn("VendorBatches.create")(function* (
          { idempotency, principal },
          sandbox,
          plan
        ) {
          if (Option.isSome(idempotency)) {
            const { key } = idempotency.value
            const now = yield* DateTime.now
            const since = idempotencySince(now)
            const earlier = yield* tasks.findReplay({ ...principal, key, since, now })
            if (Option.isSome(earlier)) {
              return {
                ...(yield* replayOf(idempotency, earlier.value)),
                sandbox,
                ending: undefined
              }
            }
          }
          return yield* creation.createPriced(yield* plan)
        }),
        get,
        list: store.list,
        receipts: Effect.fnUntraced(function* (userId, id, page) {
          const task = yield* tasks.view(id)
          if (!Option.exists(task, (it) => it.userId === userId)) {
            return yield* problem(2005, `There is no task ${id}`)
          }
          return yield* store.receipts({ id, userId }, page)
        }),
        cancel: Effect.fn("VendorBatches.cancel")(function* (userId, id) {
          const { action, id: taskId, model, vendor } = yield* get(userId, id)
          yield* router.cancel(userId, { vendor, model, action }, taskId)
          return yield* find(userId, taskId)
        })
      })
    })
  )
}

export const noBatch = (id: string): Problem =>
  problem(2005, `There is no batch ${id.slice(0, 60)}`)
