import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option, Schema } from "effect"
import { scanList, when } from "../db/ListScan.ts"
import { Micro, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { shownChange } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import { ledgerSkewMinutes } from "../domain/limits/Limits.ts"

export class EntryRow extends Schema.Class<EntryRow>("EntryRow")({
  seq: Schema.BigInt,
  kind: Schema.Literals(["top_up", "adjustment", "hold", "capture", "release", "late_charge"]),
  amount: Micro,
  settledAfter: Micro,
  heldAfter: Micro,
  operationId: Schema.String,
  subjectId: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  traceId: Schema.NullOr(Schema.String),
  createdAt: Time
}) {}

/**
 * The displayed amount of an entry: its effect on the displayed settled balance or, for a hold or a release, on the
 * displayed held amount. docs/reference/wallet.md#amounts
 */
export const shownAmount = ({
  amount,
  heldAfter,
  kind,
  settledAfter
}: Pick<EntryRow, "amount" | "heldAfter" | "kind" | "settledAfter">): Credits => {
  switch (kind) {
    case "top_up":
    case "adjustment":
      return shownChange(settledAfter - amount, settledAfter)
    case "capture":
    case "late_charge":
      return shownChange(settledAfter, settledAfter + amount)
    case "hold":
      return shownChange(heldAfter - amount, heldAfter)
    case "release":
      return shownChange(heldAfter, heldAfter + amount)
  }
}

/** A page of the ledger: the entries before this number, newest first, that match all given filters. */
export interface EntryPage {
  readonly before: Option.Option<bigint>
  readonly limit: number
  readonly kind?: EntryRow["kind"] | undefined
  /** The task or call that the entry is about. */
  readonly subjectId?: string | undefined
  /** Created at this time or later. */
  readonly since?: DateTime.Utc | undefined
  /** Created before this time. */
  readonly until?: DateTime.Utc | undefined
  readonly traceId?: string | undefined
  readonly minAmount?: Credits | undefined
  readonly maxAmount?: Credits | undefined
}

/**
 * A page without filters. Its values are sub-selects, whose results the planner does not know, so one generic plan
 * serves every user and page; Postgres would plan every query with literal values separately.
 */
const newest = (sql: PgClient.PgClient, userId: UserId, { before, limit }: EntryPage) => {
  const conditions = [
    sql`c.user_id = (SELECT ${userId}::uuid)`,
    ...when(Option.getOrUndefined(before), (seq) => sql`c.seq < (SELECT ${seq}::bigint)`)
  ]
  return sql`
    SELECT * FROM wallet_entries c WHERE ${sql.and(conditions)}
    ORDER BY c.seq DESC LIMIT (SELECT ${limit}::int)`.pipe(
    rowsOf(EntryRow),
    Effect.map((rows) => ({ rows, end: null })),
    storeFailures
  )
}

/**
 * Implements `WalletStore.search`: newest first. Entry numbers follow the order of time, so no index by time is needed.
 */
export const search = (sql: PgClient.PgClient) => (userId: UserId, page: EntryPage) => {
  const { before, limit, ...wanted } = page
  if (Object.values(wanted).every((it) => it === undefined)) return newest(sql, userId, page)
  const { kind, since, until } = page
  const seqAt = (at: DateTime.Utc) => sql`(
    SELECT ledger_seq_at(w.user_id, w.entry_count, ${toDate(at)}) FROM wallets w WHERE w.user_id = ${userId})`
  const isOperators = kind === "top_up" || kind === "adjustment"
  const candidates = [
    sql`c.user_id = ${userId}`,
    ...when(Option.getOrUndefined(before), (seq) => sql`c.seq < ${seq}`),
    ...when(page.subjectId, (id) => sql`c.subject_id = ${id}`),
    ...(isOperators && page.subjectId === undefined ? [sql`c.subject_id IS NULL`] : []),
    ...when(
      since,
      (at) => sql`c.seq >= ${seqAt(DateTime.subtract(at, { minutes: ledgerSkewMinutes }))}`
    ),
    ...when(until, (at) => sql`c.seq < ${seqAt(DateTime.add(at, { minutes: ledgerSkewMinutes }))}`)
  ]
  return scanList(sql)({
    user: userId,
    row: EntryRow,
    columns: sql.literal("t.*"),
    key: "seq",
    candidates: sql`SELECT * FROM wallet_entries c WHERE ${sql.and(candidates)} ORDER BY c.seq DESC`,
    filters: [
      ...when(kind, (name) => sql`t.kind = ${name}`),
      ...when(since, (at) => sql`t.created_at >= ${toDate(at)}`),
      ...when(until, (at) => sql`t.created_at < ${toDate(at)}`),
      ...when(page.traceId, (id) => sql`t.trace_id = ${id}`),
      ...when(page.minAmount, (amount) => sql`t.amount >= ${amount}`),
      ...when(page.maxAmount, (amount) => sql`t.amount <= ${amount}`)
    ],
    limit
  })
}

/** Implements `WalletStore.entriesOf`. */
export const entriesOf = (sql: PgClient.PgClient) => (userId: UserId, subjectId: string) =>
  sql`
    SELECT * FROM wallet_entries
    WHERE subject_id = ${subjectId} AND user_id = ${userId} ORDER BY seq`.pipe(
    rowsOf(EntryRow),
    storeFailures
  )
