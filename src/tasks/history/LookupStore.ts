import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { idMillis } from "../../db/ListScan.ts"
import { rowsOf, Time } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { UserId } from "../../domain/Ids.ts"

/** An object that an operator can find by its id, with its user. */
export const Thing = Schema.Struct({
  type: Schema.Literals([
    "user",
    "task",
    "call",
    "api_key",
    "session",
    "task_batch",
    "webhook_endpoint",
    "webhook_delivery",
    "event"
  ]),
  id: Schema.String,
  userId: UserId,
  createdAt: Time
})
export type Thing = typeof Thing.Type

/** The maximum number of tasks, and of calls, found for a trace. */
const tracedMax = 10

/**
 * An id contains its creation time. The process's clock may differ from the one that wrote `created_at`, so the query
 * allows an hour on either side and reads only the partitions of that range.
 */
const aroundSeconds = 3600

/** Finds objects of all users by id. Each statement reads a few rows by their keys. */
export class LookupStore extends Context.Service<LookupStore>()("gateway/tasks/LookupStore", {
  make: Effect.map(PgClient.PgClient, (sql) => {
    const around = (id: string) => {
      const seconds = idMillis(id) / 1000
      return sql`created_at >= to_timestamp(${seconds - aroundSeconds})
          AND created_at <= to_timestamp(${seconds + aroundSeconds})`
    }
    return {
      /** Finds a task, a call or a user. */
      byUuid: (id: string) =>
        sql`
          SELECT 'task' AS type, id::text, user_id, created_at FROM tasks WHERE id = ${id}::uuid
          UNION ALL
          SELECT 'call', id::text, user_id, created_at FROM calls
          WHERE id = ${id}::uuid AND ${around(id)}
          UNION ALL
          SELECT 'user', id::text, id, created_at FROM users
          WHERE id = ${id}::uuid AND deleted_at IS NULL`.pipe(rowsOf(Thing), storeFailures),
      /** Finds an object whose id has a prefix, such as `evt_`. */
      byName: (id: string) => {
        const [prefix = ""] = id.split("_")
        const table = tables[prefix]
        if (table === undefined) return Effect.succeed([])
        const { isPartitioned, name, type } = table
        const digits = id.slice(prefix.length + 1)
        if (isPartitioned && !/^[0-9a-f]{12}/u.test(digits)) return Effect.succeed([])
        return sql`
          SELECT ${type} AS type, id, user_id, created_at FROM ${sql(name)}
          WHERE id = ${id} AND user_id IS NOT NULL
            AND ${isPartitioned ? around(`${digits.slice(0, 8)}-${digits.slice(8, 12)}`) : sql`true`}`.pipe(
          rowsOf(Thing),
          storeFailures
        )
      },
      /** Finds the tasks and calls of a trace, newest first. */
      byTrace: (traceId: string) =>
        sql`
          SELECT * FROM (
            SELECT 'task' AS type, t.id::text, t.user_id, t.created_at
            FROM tasks_search(null, null, null, null, ${traceId}, null, null, null, null, null, null, null, null,
              '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
              ${tracedMax}, ${tracedMax}) t
            WHERE t.user_id IS NOT NULL
          ) tasks
          UNION ALL
          SELECT * FROM (
            SELECT 'call', c.id::text, c.user_id, c.created_at FROM calls c WHERE c.trace_id = ${traceId}
            ORDER BY c.created_at DESC LIMIT ${tracedMax}
          ) calls`.pipe(rowsOf(Thing), storeFailures)
    }
  })
}) {
  static readonly layer = Layer.effect(LookupStore, LookupStore.make)
}

interface Table {
  readonly name: string
  readonly type: Thing["type"]
  /** The table is partitioned by day, and the id contains the time. */
  readonly isPartitioned: boolean
}

const tables: Readonly<Record<string, Table>> = {
  key: { name: "api_keys", type: "api_key", isPartitioned: false },
  ses: { name: "sessions", type: "session", isPartitioned: false },
  tb: { name: "task_batches", type: "task_batch", isPartitioned: false },
  whe: { name: "webhook_endpoints", type: "webhook_endpoint", isPartitioned: false },
  whd: { name: "deliveries", type: "webhook_delivery", isPartitioned: true },
  evt: { name: "events", type: "event", isPartitioned: true }
}
