import { Context, DateTime, Duration, Effect, Layer, Option, Semaphore } from "effect"
import { AppConfig } from "../config/Config.ts"
import type { ScannedPage } from "../db/ListScan.ts"
import type { DeliveryId, EndpointId, TaskId, UserId } from "../domain/Ids.ts"
import { recoverDeliveriesMax } from "../domain/limits/Limits.ts"
import { invalid, problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { DeliveryLogStore } from "./DeliveryLogStore.ts"
import type {
  AttemptRow,
  DeliveryRow,
  RedeliveryFilter,
  TaskDeliveryRow
} from "./DeliveryLogStore.ts"
import type { DeliveryFilter, DeliveryPage } from "./DeliverySearchStore.ts"
import { Endpoints } from "./Endpoints.ts"

export type { AttemptRow, DeliveryRow, TaskDeliveryRow } from "./DeliveryLogStore.ts"

export interface Recovery {
  /** How many deliveries this call queued again. */
  readonly recovered: number
  /** The limit was reached; call again for the rest. */
  readonly hasMore: boolean
}

type Failure = Problem | StoreUnavailable

/** The delivery log of a user, and redelivery. docs/reference/webhooks.md#redelivery. */
export class Deliveries extends Context.Service<
  Deliveries,
  {
    readonly search: (
      userId: UserId,
      filter: DeliveryFilter,
      page: DeliveryPage
    ) => Effect.Effect<ScannedPage<DeliveryRow>, StoreUnavailable>
    /** Fails with 2005. */
    readonly get: (
      userId: UserId,
      id: DeliveryId
    ) => Effect.Effect<
      {
        readonly row: DeliveryRow
        readonly attempts: ReadonlyArray<AttemptRow>
        /** The request body as text; empty if the event is no longer stored. */
        readonly body: string
      },
      Failure
    >
    /** All deliveries of a task's events joined with their attempts, ordered by delivery, then by attempt. */
    readonly ofTask: (id: TaskId) => Effect.Effect<ReadonlyArray<TaskDeliveryRow>, StoreUnavailable>
    /** Resends a delivery under the same id, whatever its status. Fails with 2010 if its endpoint was deleted. */
    readonly redeliver: (userId: UserId, id: DeliveryId) => Effect.Effect<DeliveryRow, Failure>
    /** Resends a bounded number of matching deliveries, oldest first. `next`: where the rest begins. */
    readonly redeliverAll: (
      userId: UserId,
      filter: RedeliveryFilter
    ) => Effect.Effect<
      { readonly count: number; readonly next: Option.Option<DeliveryId> },
      StoreUnavailable
    >
    /** Resends a bounded number of failed and skipped deliveries created at or after `since`, oldest first. */
    readonly recover: (
      userId: UserId,
      endpointId: EndpointId,
      since: DateTime.Utc
    ) => Effect.Effect<Recovery, Failure>
  }
>()("gateway/webhooks/Deliveries") {
  static readonly layer = Layer.effect(
    Deliveries,
    Effect.gen(function* () {
      const log = yield* DeliveryLogStore
      const endpoints = yield* Endpoints
      const notifier = yield* WorkNotifier
      const { retention } = yield* AppConfig
      const days = Math.floor(Duration.toDays(retention.log))

      const find = Effect.fn("Deliveries.find")(function* (userId: UserId, id: DeliveryId) {
        const row = yield* log.find(userId, id)
        return yield* Effect.mapError(Effect.fromOption(row), () => notKept(id))
      })
      const notKept = (id: DeliveryId) =>
        problem(2005, `There is no webhook delivery ${id}; the log is kept ${days} days`)

      const requeue = Effect.fnUntraced(function* (ids: ReadonlyArray<DeliveryId>) {
        const { endpoints, queued } = yield* log.requeue(ids, yield* DateTime.now)
        yield* notifier.notifyEndpoints(endpoints)
        return queued
      })

      const oldest = oldestMatching(log, yield* Semaphore.make(1))

      const redeliverAll = Effect.fnUntraced(function* (userId: UserId, filter: RedeliveryFilter) {
        const found = yield* oldest(userId, filter)
        const ids = found.slice(0, recoverDeliveriesMax)
        const count = ids.length === 0 ? 0 : yield* requeue(ids)
        const last = found.length > ids.length ? ids.at(-1) : undefined
        return { count, next: Option.fromUndefinedOr(last) }
      })

      return Deliveries.of({
        search: log.search,
        ofTask: log.ofTask,
        get: Effect.fn("Deliveries.get")(function* (userId, id) {
          const row = yield* find(userId, id)
          const bytes = Option.getOrElse(yield* log.body(id), () => new Uint8Array())
          return { row, attempts: yield* log.attempts(id), body: new TextDecoder().decode(bytes) }
        }),
        redeliver: Effect.fn("Deliveries.redeliver")(function* (userId, id) {
          const row = yield* find(userId, id)
          if (row.endpointDeleted) {
            return yield* problem(
              2010,
              `The endpoint ${row.endpointId} of this delivery was deleted`
            )
          }
          // The daily partition of the events is dropped before that of the deliveries
          if (Option.isNone(yield* log.body(id))) return yield* notKept(id)
          yield* requeue([id])
          return yield* find(userId, id)
        }),
        redeliverAll: Effect.fn("Deliveries.redeliverAll")(redeliverAll),
        recover: Effect.fn("Deliveries.recover")(function* (userId, endpointId, since) {
          yield* endpoints.get(userId, endpointId)
          const now = yield* DateTime.now
          if (DateTime.isGreaterThan(since, now)) {
            return yield* invalid([{ pointer: "#/since", detail: "Expected a time in the past" }])
          }
          const { count, next } = yield* redeliverAll(userId, {
            endpointId,
            since,
            statuses: ["failed", "skipped"],
            type: undefined,
            until: undefined,
            after: undefined
          })
          return { recovered: count, hasMore: Option.isSome(next) }
        })
      })
    })
  )
}

/**
 * The oldest matching deliveries, one more than a call resends. The log is read in windows, one at a time in this
 * process, so that a filter that matches few rows does not delay other callers.
 */
const oldestMatching = (log: DeliveryLogStore["Service"], turn: Semaphore.Semaphore) =>
  Effect.fnUntraced(function* (userId: UserId, filter: RedeliveryFilter) {
    const found: Array<DeliveryId> = []
    let after = filter.after
    while (found.length <= recoverDeliveriesMax) {
      const left = recoverDeliveriesMax + 1 - found.length
      const window = log.matching(userId, { ...filter, after }, left)
      const { ids, scanEnd } = yield* turn.withPermits(1)(window)
      found.push(...ids)
      if (scanEnd === null) break
      after = scanEnd
    }
    return found
  })
