import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { writeEntry } from "../../db/Audited.ts"
import type { PendingEntry } from "../../db/Audited.ts"
import { scanList, when } from "../../db/ListScan.ts"
import { Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { AuditId, auditTimeMillis, UserId } from "../../domain/Ids.ts"

export class AuditRow extends Schema.Class<AuditRow>("AuditRow")({
  id: AuditId,
  createdAt: Time,
  type: Schema.String,
  actorType: Schema.Literals(["operator", "api_key", "session", "access_token"]),
  actorId: Schema.NullOr(Schema.String),
  actorUserId: Schema.NullOr(UserId),
  ipAddress: Schema.NullOr(Schema.String),
  userId: Schema.NullOr(UserId),
  resourceId: Schema.NullOr(Schema.String),
  changes: Schema.Record(Schema.String, Schema.Json),
  traceId: Schema.NullOr(Schema.String)
}) {}

/** A page of the log: the entries before this one, newest first, that match all given filters. */
export interface AuditPage {
  readonly before: Option.Option<AuditId>
  readonly limit: number
  readonly userId?: UserId | undefined
  readonly type?: string | undefined
  readonly actorId?: string | undefined
  readonly resourceId?: string | undefined
  /** Created at this time or later. */
  readonly since?: DateTime.Utc | undefined
  /** Created before this time. */
  readonly until?: DateTime.Utc | undefined
}

/** The audit log. `audited` writes the entry of a change in the change's transaction. */
export class AuditStore extends Context.Service<AuditStore>()("gateway/process/AuditStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    append: (entry: PendingEntry) => writeEntry(sql, entry).pipe(Effect.asVoid, storeFailures),
    list: list(sql)
  }))
}) {
  static readonly layer = Layer.effect(AuditStore, AuditStore.make)
}

function list(sql: PgClient.PgClient) {
  return (page: AuditPage) => {
    const candidates = [
      // Also restricts the time to that of the id, so that later partitions are not read
      ...when(
        Option.getOrUndefined(page.before),
        (id) => sql`c.id < ${id} AND c.created_at <= ${new Date(auditTimeMillis(id))}`
      ),
      ...when(page.userId, (id) => sql`c.user_id = ${id}`),
      ...when(page.since, (at) => sql`c.created_at >= ${toDate(at)}`),
      ...when(page.until, (at) => sql`c.created_at < ${toDate(at)}`)
    ]
    return scanList(sql)({
      row: AuditRow,
      columns: sql.literal("t.*"),
      key: "id",
      candidates: sql`
        SELECT * FROM audit_entries c WHERE ${candidates.length === 0 ? sql`true` : sql.and(candidates)}
        ORDER BY c.id DESC`,
      filters: [
        ...when(page.type, (type) => sql`t.type = ${type}`),
        ...when(page.actorId, (id) => sql`t.actor_id = ${id}`),
        ...when(page.resourceId, (id) => sql`t.resource_id = ${id}`)
      ],
      limit: page.limit
    })
  }
}
