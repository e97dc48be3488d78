import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** Queues tasks for a slot, and gives free slots to the oldest tasks of the queue. */
export interface TakeSlots {
  /** The key of the limit and its queue. */
  readonly line: string
  /** Slots of this key, over all processes. */
  readonly max: number
  /** The process whose tasks are returned. */
  readonly owner: string
  readonly joining: ReadonlyArray<{ readonly taskId: TaskId; readonly epoch: number }>
}

/** The owner's tasks: those that have just joined the queue, and those that hold a slot. */
export interface TakenSlots {
  readonly joined: ReadonlyArray<TaskId>
  readonly held: ReadonlyArray<TaskId>
}

/** Tasks of one queue, over all processes. */
export const SlotQueueState = Schema.Struct({
  line: Schema.String,
  held: Schema.Int,
  waiting: Schema.Int
})
export type SlotQueueState = typeof SlotQueueState.Type

/** Slots for jobs at a vendor, shared by all processes: columns of `runs`. ADR 0108. */
export class ConcurrencySlotStore extends Context.Service<
  ConcurrencySlotStore,
  {
    readonly take: (request: TakeSlots) => Effect.Effect<TakenSlots, StoreUnavailable>
    readonly queues: Effect.Effect<ReadonlyArray<SlotQueueState>, StoreUnavailable>
  }
>()("gateway/tasks/submission/ConcurrencySlotStore") {
  static readonly layer = Layer.effect(
    ConcurrencySlotStore,
    Effect.map(PgClient.PgClient, (sql) =>
      ConcurrencySlotStore.of({
        take: ({ joining, line, max, owner }) =>
          sql`
            SELECT * FROM concurrency_slots_take(${line}, ${max}, ${owner},
              ${joining.map(({ taskId }) => taskId)}::uuid[],
              ${joining.map(({ epoch }) => epoch)}::integer[])`.pipe(
            rowsOf(Row),
            Effect.map((rows): TakenSlots => ({
              joined: rows.filter(({ held }) => !held).map(({ taskId }) => taskId),
              held: rows.filter(({ held }) => held).map(({ taskId }) => taskId)
            })),
            storeFailures
          ),
        queues: sql`
          SELECT slot_key AS line, count(*) FILTER (WHERE slot_held)::integer AS held,
            count(*) FILTER (WHERE NOT slot_held)::integer AS waiting
          FROM runs WHERE slot_key IS NOT NULL GROUP BY slot_key ORDER BY slot_key`.pipe(
          rowsOf(SlotQueueState),
          storeFailures
        )
      })
    )
  )
}

const Row = Schema.Struct({ taskId: TaskId, held: Schema.Boolean })
