import { PgClient } from "@effect/sql-pg"
import { Array, Effect, Layer, Schema } from "effect"
import type * as DateTime from "effect/DateTime"
import { rowOf, rowsOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { taskColumns, TaskRow, TaskView } from "../db/TaskRow.ts"
import { TaskId } from "../domain/Ids.ts"
import { makeFinish } from "./completion/TaskFinishStore.ts"
import { makeAccept, makeFindReplay } from "./creation/TaskAcceptStore.ts"
import { VendorJob } from "./running/OwnedTask.ts"
import { makeClaims } from "./running/TaskClaimStore.ts"
import { makeSteps } from "./running/TaskStepStore.ts"
import { TaskStore } from "./TaskStore.ts"
import type { RunState } from "./TaskStore.ts"

/** `TaskStore` on Postgres. The functions that it calls are in `schema/functions`. */
export const layer: Layer.Layer<TaskStore, never, PgClient.PgClient> = Layer.effect(
  TaskStore,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    return TaskStore.of({
      accept: yield* makeAccept(sql),
      findReplay: makeFindReplay(sql),
      finish: yield* makeFinish(sql),
      ...ownership(sql),
      ...(yield* makeClaims(sql)),
      ...(yield* makeSteps(sql)),
      find: (id) =>
        sql`SELECT * FROM tasks WHERE id = ${id}`.pipe(
          rowsOf(TaskRow),
          Effect.map(Array.head),
          storeFailures
        ),
      view: (id) =>
        sql`SELECT ${sql.literal(taskColumns)} FROM tasks t WHERE t.id = ${id}`.pipe(
          rowsOf(TaskView),
          Effect.map(Array.head),
          storeFailures
        ),
      views: (ids) =>
        sql`SELECT ${sql.literal(taskColumns)} FROM tasks t WHERE t.id = ANY (${ids}::uuid[])`.pipe(
          rowsOf(TaskView),
          storeFailures
        ),
      makeDue: (id, now) =>
        sql`
          UPDATE runs SET callback_received = true, due_at = least(due_at, ${toDate(now)})
          WHERE task_id = ${id} RETURNING owner IS NOT NULL AS in_hand`.pipe(
          rowsOf(Schema.Struct({ inHand: Schema.Boolean })),
          Effect.map(([run]) => (run === undefined ? "Ended" : run.inHand ? "InHand" : "Due")),
          storeFailures
        ),
      job: (id) =>
        sql`
          SELECT account_id, handle FROM vendor_attempts
          WHERE task_id = ${id} AND state = 'submitted' AND handle IS NOT NULL
          ORDER BY n DESC LIMIT 1`.pipe(rowsOf(VendorJob), Effect.map(Array.head), storeFailures)
    })
  })
)

function ownership(sql: PgClient.PgClient) {
  const Epoch = Schema.Struct({ epoch: Schema.Int })
  const Owned = Schema.Struct({ taskId: TaskId, epoch: Schema.Int })
  const Share = Schema.Struct({ queue: Schema.String, tasks: Schema.Array(TaskId) })
  return {
    runState: (id: TaskId, epoch: number) =>
      sql`SELECT epoch FROM runs WHERE task_id = ${id}`.pipe(
        rowsOf(Epoch),
        Effect.map(([run]): RunState =>
          run === undefined ? "Ended" : run.epoch === epoch ? "Owned" : "Taken"
        ),
        storeFailures
      ),
    ownedBy: (owner: string) =>
      sql`SELECT task_id, epoch FROM runs WHERE owner = ${owner}`.pipe(
        rowsOf(Owned),
        storeFailures
      ),
    releaseRun: (id: TaskId, epoch: number) =>
      sql`UPDATE runs SET owner = NULL WHERE task_id = ${id} AND epoch = ${epoch}`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    handOver: (id: TaskId, epoch: number) =>
      sql`SELECT task_hand_over(${id}, ${epoch})`.pipe(Effect.asVoid, storeFailures),
    share: (aliveSince: DateTime.Utc, process: string, limit: number) =>
      sql`SELECT * FROM task_share(${toDate(aliveSince)}, ${process}, ${limit}::int)`.pipe(
        rowsOf(Share),
        storeFailures
      ),
    releaseOrphans: (heartbeatSince: DateTime.Utc, limit: number) =>
      sql`SELECT * FROM task_orphans_release(${toDate(heartbeatSince)}, ${limit}::int)`.pipe(
        rowOf(Schema.Struct({ released: Schema.Int })),
        Effect.map(({ released }) => released),
        storeFailures
      )
  }
}
