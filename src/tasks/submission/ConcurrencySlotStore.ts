import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowOf, rowsOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { SlotLimit } from "../../vendors/VendorClient.ts"
import type { StoredInputs } from "../running/OwnedTask.ts"

/** A task in hand that asks for a slot. */
export interface SlotRequest {
  readonly taskId: TaskId
  readonly epoch: number
  /** The fetched media, kept for the next step if the task has to wait. */
  readonly inputs: StoredInputs
}

/** Requests for slots of one limit. */
export interface TakeSlots extends SlotLimit {
  /** The account to which a task is submitted once it has a slot. */
  readonly accountId: string
  readonly requests: ReadonlyArray<SlotRequest>
  readonly now: DateTime.Utc
}

/** The tasks that hold or wait for slots of one limit, over all processes. */
export const SlotQueueState = Schema.Struct({
  line: Schema.String,
  held: Schema.Int,
  waiting: Schema.Int
})
export type SlotQueueState = typeof SlotQueueState.Type

const Taken = Schema.Struct({ taskId: TaskId, held: Schema.Boolean })
const Served = Schema.Struct({ given: Schema.Int, limits: Schema.Int })

/** Slots for concurrent jobs at a vendor, shared by all processes; they are columns of `runs`. ADR 0108. */
export class ConcurrencySlotStore extends Context.Service<ConcurrencySlotStore>()(
  "gateway/tasks/submission/ConcurrencySlotStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /**
       * Gives slots to tasks, the oldest first. A task that gets none waits without an owner until it does. The result
       * omits tasks that are being ended.
       */
      take: ({ accountId, line, max, now, requests }: TakeSlots) =>
        sql`
          SELECT * FROM slots_take(${line}, ${max}, ${accountId},
            ${sql.json(requests.map(({ epoch, inputs, taskId }) => ({ task: taskId, epoch, inputs })))},
            ${toDate(now)})`.pipe(rowsOf(Taken), storeFailures),
      /** Gives free slots to waiting tasks and makes those tasks due. */
      serve: (now: DateTime.Utc) =>
        sql`SELECT * FROM slots_serve(${toDate(now)})`.pipe(rowOf(Served), storeFailures),
      queues: sql`
        SELECT slot_key AS line, count(*) FILTER (WHERE slot_held)::integer AS held,
          count(*) FILTER (WHERE NOT slot_held)::integer AS waiting
        FROM runs WHERE slot_key IS NOT NULL GROUP BY slot_key ORDER BY slot_key`.pipe(
        rowsOf(SlotQueueState),
        storeFailures
      )
    }))
  }
) {
  static readonly layer = Layer.effect(ConcurrencySlotStore, ConcurrencySlotStore.make)
}
