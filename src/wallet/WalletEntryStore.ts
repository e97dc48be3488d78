import type { PgClient } from "@effect/sql-pg"
import { Option, Schema } from "effect"
import type { DateTime } from "effect"
import { Micro, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { UserId } from "../domain/Ids.ts"

export class EntryRow extends Schema.Class<EntryRow>("EntryRow")({
  seq: Schema.BigInt,
  kind: Schema.Literals(["top_up", "adjustment", "hold", "capture", "release"]),
  amount: Micro,
  settledAfter: Micro,
  heldAfter: Micro,
  operationId: Schema.String,
  subjectId: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  traceId: Schema.NullOr(Schema.String),
  createdAt: Time
}) {}

/** A page of the ledger: entries before this number, newest first, that match every filter given. */
export interface EntryPage {
  readonly before: Option.Option<bigint>
  readonly limit: number
  readonly kind?: EntryRow["kind"] | undefined
  /** The task or call that the entry is about. */
  readonly subjectId?: string | undefined
  /** Created at or after. */
  readonly since?: DateTime.Utc | undefined
  /** Created before. */
  readonly until?: DateTime.Utc | undefined
}

/** `WalletStore.entries`. */
export const entries = (sql: PgClient.PgClient) => (userId: UserId, page: EntryPage) => {
  const before = Option.getOrUndefined(page.before)
  return sql`
    SELECT * FROM wallet_entries WHERE ${sql.and([
      sql`user_id = ${userId}`,
      ...(before === undefined ? [] : [sql`seq < ${before}`]),
      ...(page.kind === undefined ? [] : [sql`kind = ${page.kind}`]),
      ...(page.subjectId === undefined ? [] : [sql`subject_id = ${page.subjectId}`]),
      ...(page.since === undefined ? [] : [sql`created_at >= ${toDate(page.since)}`]),
      ...(page.until === undefined ? [] : [sql`created_at < ${toDate(page.until)}`])
    ])}
    ORDER BY seq DESC LIMIT ${page.limit}`.pipe(rowsOf(EntryRow), storeFailures)
}

/** `WalletStore.entriesOf`. */
export const entriesOf = (sql: PgClient.PgClient) => (userId: UserId, subjectId: string) =>
  sql`
    SELECT * FROM wallet_entries
    WHERE subject_id = ${subjectId} AND user_id = ${userId} ORDER BY seq`.pipe(
    rowsOf(EntryRow),
    storeFailures
  )
