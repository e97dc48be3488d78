import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { Files } from "../../artifacts/files/Files.ts"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import { batchAdapterOf } from "../../catalog/CatalogContent.ts"
import { taskOfBatch } from "../../domain/Ids.ts"
import type { FileId, TaskId, UserId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import { Router } from "../creation/Router.ts"
import { idempotencySince } from "../creation/TaskAcceptance.ts"
import type { AcceptRequest } from "../creation/TaskAcceptance.ts"
import { replayOf, TaskCreation } from "../creation/TaskCreation.ts"
import type { Created, PricedOrder } from "../creation/TaskCreation.ts"
import { TaskStore } from "../TaskStore.ts"
import type { Replayed } from "../TaskStore.ts"
import { VendorBatchStore } from "./VendorBatchStore.ts"
import type { ReceiptPage, ReceiptRow, VendorBatchRow } from "./VendorBatchStore.ts"

export type { ReceiptRow, VendorBatchRow } from "./VendorBatchStore.ts"

type Failure = Problem | StoreUnavailable

/** Identifies a batch by its user, its vendor and the id in that vendor's format. */
export interface NamedBatch {
  readonly userId: UserId
  readonly vendor: string
  readonly id: string
}

/** Vendors' batches of language-model requests. Each batch is one task. docs/reference/vendor-batches.md, ADR 0300 */
export class VendorBatches extends Context.Service<
  VendorBatches,
  {
    /** Whether the simulator runs the vendor's batches, because no key of the vendor is configured. */
    readonly isSandbox: (vendor: string) => boolean
    /** The first response to the user's idempotency key, if there is one. The request may still differ. */
    readonly earlier: (
      principal: Principal,
      key: string | undefined
    ) => Effect.Effect<Option.Option<Replayed>, StoreUnavailable>
    /** Fails as `TaskCreation` or `plan` does. A repeated request gets the first response without running `plan`. */
    readonly create: (
      request: Pick<AcceptRequest, "idempotency" | "principal">,
      sandbox: boolean,
      plan: Effect.Effect<PricedOrder, Failure>
    ) => Effect.Effect<Created, Failure>
    /** Fails with 2005. */
    readonly get: (named: NamedBatch) => Effect.Effect<VendorBatchRow, Failure>
    readonly list: VendorBatchStore["Service"]["list"]
    /**
     * What each request of the batch was charged, ordered by digest; empty for a task that is not a batch. Fails with
     * 2005.
     */
    readonly receipts: (
      userId: UserId,
      id: TaskId,
      page: ReceiptPage
    ) => Effect.Effect<ReadonlyArray<ReceiptRow>, Failure>
    /**
     * Cancels the batch at the vendor without waiting for its end. Fails with 2005, or with 2010 if it has already
     * ended.
     */
    readonly cancel: (named: NamedBatch) => Effect.Effect<VendorBatchRow, Failure>
    /**
     * Deletes a batch that has ended, and its files; its charges stay. Fails with 2005, or with 2010 if the batch has
     * not ended.
     */
    readonly delete: (named: NamedBatch) => Effect.Effect<void, Failure>
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
      const files = yield* Files

      /** Ignores a file that its user has already deleted. */
      const deleteFile = (userId: UserId, id: FileId) =>
        Effect.catchIf(
          files.delete(userId, id),
          (error) => error._tag === "Problem" && error.code === 2005,
          () => Effect.void
        )

      const get = Effect.fnUntraced(function* ({ id, userId, vendor }: NamedBatch) {
        const taskId = taskOfBatch(id)
        if (Option.isNone(taskId)) return yield* noBatch(id)
        const found = yield* store.find({ userId, vendor, id: taskId.value })
        return Option.isSome(found) ? found.value : yield* noBatch(id)
      })

      const earlier = Effect.fnUntraced(function* (principal: Principal, key: string | undefined) {
        if (key === undefined) return Option.none<Replayed>()
        const now = yield* DateTime.now
        return yield* tasks.findReplay({ ...principal, key, since: idempotencySince(now), now })
      })

      return VendorBatches.of({
        earlier,
        isSandbox: (vendor) => {
          const adapter = batchAdapterOf(vendor)
          return adapter !== undefined && vendors.isSandbox(adapter)
        },
        create: Effect.fn("VendorBatches.create")(function* (
          { idempotency, principal },
          sandbox,
          plan
        ) {
          const first = yield* earlier(principal, Option.getOrUndefined(idempotency)?.key)
          if (Option.isSome(first)) return yield* repeatedBatch(idempotency, first.value, sandbox)
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
        cancel: Effect.fn("VendorBatches.cancel")(function* (named) {
          const { action, id, model, vendor } = yield* get(named)
          yield* router.cancel(named.userId, { vendor, model, action }, id)
          return yield* get(named)
        }),
        delete: Effect.fn("VendorBatches.delete")(function* (named) {
          const { body, errorFile, id, outputFile, status } = yield* get(named)
          if (!isTerminal(status)) return yield* notEnded
          const input = Option.map(decodeBody(body), (it) => it.input_file_id)
          const ofBatch = [outputFile, errorFile, Option.getOrNull(input)]
          // The batch is hidden last, so that an interrupted delete can be repeated
          yield* Effect.forEach(ofBatch, (file) =>
            file === null ? Effect.void : deleteFile(named.userId, file)
          )
          yield* store.delete(named.userId, id, yield* DateTime.now)
        })
      })
    })
  )
}

/** The first response if the request repeats it. Fails with 2008 if it differs. */
export const repeatedBatch = (
  idempotency: AcceptRequest["idempotency"],
  first: Replayed,
  sandbox: boolean
): Effect.Effect<Created, Problem> =>
  Effect.map(replayOf(idempotency, first), (it) => ({ ...it, sandbox, ending: undefined }))

const decodeBody = Schema.decodeUnknownOption(BatchBody)

const notEnded: Problem = problem(2010, "The batch has not ended: cancel it first")

export const noBatch = (id: string): Problem =>
  problem(2005, `There is no batch ${id.slice(0, 60)}`)
