import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { writeEntry } from "../db/Audited.ts"
import type { PendingEntry } from "../db/Audited.ts"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { AuditId, auditTimeMillis, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

export class AuditRow extends Schema.Class<AuditRow>("AuditRow")({
  id: AuditId,
  createdAt: Time,
  type: Schema.String,
  actorType: Schema.Literals(["operator", "api_key", "session"]),
  actorId: Schema.NullOr(Schema.String),
  actorUserId: Schema.NullOr(UserId),
  ipAddress: Schema.NullOr(Schema.String),
  userId: Schema.NullOr(UserId),
  resourceId: Schema.NullOr(Schema.String),
  changes: Schema.Record(Schema.String, Schema.Json),
  traceId: Schema.NullOr(Schema.String)
}) {}

/** A page of the log: entries before this one, newest first, that match every filter given. */
export interface AuditPage {
  readonly before: Option.Option<AuditId>
  readonly limit: number
  readonly userId?: UserId | undefined
  readonly type?: string | undefined
  readonly actorId?: string | undefined
  readonly resourceId?: string | undefined
  /** Created at or after. */
  readonly since?: DateTime.Utc | undefined
  /** Created before. */
  readonly until?: DateTime.Utc | undefined
}

/** The audit log. Entries of a change are written by `audited`, in the transaction of the change. */
export class AuditStore extends Context.Service<
  AuditStore,
  {
    readonly append: (entry: PendingEntry) => Effect.Effect<void, StoreUnavailable>
    readonly list: (page: AuditPage) => Effect.Effect<ReadonlyArray<AuditRow>, StoreUnavailable>
  }
>()("gateway/process/AuditStore") {
  static readonly layer = Layer.effect(
    AuditStore,
    Effect.map(PgClient.PgClient, (sql) =>
      AuditStore.of({
        append: (entry) => writeEntry(sql, entry).pipe(Effect.asVoid, storeFailures),
        list: list(sql)
      })
    )
  )
}

function list(sql: PgClient.PgClient) {
  return (page: AuditPage) => {
    const before = Option.getOrUndefined(page.before)
    const filters = [
      // With the time of the id, so that later partitions are not read
      ...(before === undefined
        ? []
        : [sql`id < ${before} AND created_at <= ${new Date(auditTimeMillis(before))}`]),
      ...(page.userId === undefined ? [] : [sql`user_id = ${page.userId}`]),
      ...(page.type === undefined ? [] : [sql`type = ${page.type}`]),
      ...(page.actorId === undefined ? [] : [sql`actor_id = ${page.actorId}`]),
      ...(page.resourceId === undefined ? [] : [sql`resource_id = ${page.resourceId}`]),
      ...(page.since === undefined ? [] : [sql`created_at >= ${toDate(page.since)}`]),
      ...(page.until === undefined ? [] : [sql`created_at < ${toDate(page.until)}`])
    ]
    return sql`
      SELECT * FROM audit_entries WHERE ${filters.length === 0 ? sql`true` : sql.and(filters)}
      ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(AuditRow), storeFailures)
  }
}
