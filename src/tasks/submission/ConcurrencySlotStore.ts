import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** One look at a line of tasks that wait for a slot. */
export interface SlotLook {
  readonly line: string
  /** Slots of the line, over all processes. */
  readonly max: number
  /** Whose tasks are answered. */
  readonly owner: string
  readonly joining: ReadonlyArray<{ readonly taskId: TaskId; readonly epoch: number }>
}

/** What a look found of its owner's tasks: those that joined the line, and those that hold a slot. */
export interface SlotsSeen {
  readonly joined: ReadonlyArray<TaskId>
  readonly held: ReadonlyArray<TaskId>
}

/** How a line stands, over all processes. */
export const LineState = Schema.Struct({
  line: Schema.String,
  held: Schema.Int,
  waiting: Schema.Int
})
export type LineState = typeof LineState.Type

/** Slots for jobs at a vendor, shared by all processes: columns of `runs`. ADR 0108. */
export class ConcurrencySlotStore extends Context.Service<
  ConcurrencySlotStore,
  {
    readonly take: (look: SlotLook) => Effect.Effect<SlotsSeen, StoreUnavailable>
    readonly lines: Effect.Effect<ReadonlyArray<LineState>, StoreUnavailable>
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
            Effect.map((rows): SlotsSeen => ({
              joined: rows.filter(({ held }) => !held).map(({ taskId }) => taskId),
              held: rows.filter(({ held }) => held).map(({ taskId }) => taskId)
            })),
            storeFailures
          ),
        lines: sql`
          SELECT slot_key AS line, count(*) FILTER (WHERE slot_held)::integer AS held,
            count(*) FILTER (WHERE NOT slot_held)::integer AS waiting
          FROM runs WHERE slot_key IS NOT NULL GROUP BY slot_key ORDER BY slot_key`.pipe(
          rowsOf(LineState),
          storeFailures
        )
      })
    )
  )
}

const Row = Schema.Struct({ taskId: TaskId, held: Schema.Boolean })
