import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { rowsOf, Time } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { UserId } from "../../domain/Ids.ts"

const Waiting = Schema.Struct({ userId: UserId, jobs: Schema.Int })
const Called = Schema.Struct({ calledAt: Time })

/** The data that determine the pace of polls, over all processes. */
export class PollPacingStore extends Context.Service<PollPacingStore>()(
  "gateway/tasks/submission/PollPacingStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** Jobs that wait in a queue of polls, by user. */
      waiting: (queue: string) =>
        sql`
          SELECT t.user_id, count(*)::integer AS jobs
          FROM runs r CROSS JOIN LATERAL (
            SELECT user_id FROM tasks WHERE id = r.task_id OFFSET 0
          ) t
          WHERE r.queue = ${queue} AND r.owner IS NULL GROUP BY t.user_id`.pipe(
          rowsOf(Waiting),
          storeFailures
        ),
      /** When the vendor last sent a callback for a job of the account, in Unix milliseconds. */
      calledAt: (accountId: string) =>
        sql`SELECT called_at FROM callback_times WHERE account_id = ${accountId}`.pipe(
          rowsOf(Called),
          Effect.map(([row]) =>
            Option.map(Option.fromUndefinedOr(row), ({ calledAt }) =>
              DateTime.toEpochMillis(calledAt)
            )
          ),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(PollPacingStore, PollPacingStore.make)
}
