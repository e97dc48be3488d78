import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect } from "effect"
import type { Schema } from "effect"
import type { Statement } from "effect/sql"
import { idAt, idMillis, newestSince, scanList, when } from "../db/ListScan.ts"
import { toDate } from "../db/Rows.ts"
import type { Credits } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"

/** An absent filter matches all calls. */
export interface CallFilter {
  readonly outcome?: "settled" | "released" | "lost" | undefined
  readonly apiKeyId?: string | undefined
  readonly vendor?: string | undefined
  readonly model?: string | undefined
  readonly traceId?: string | undefined
  /** Created at or after. */
  readonly since?: DateTime.Utc | undefined
  /** Created before. */
  readonly until?: DateTime.Utc | undefined
  readonly minCost?: Credits | undefined
  readonly maxCost?: Credits | undefined
  readonly before?: string | undefined
  readonly limit: number
}

/** The id of a call is created shortly before the call begins. */
const idSkewMillis = 60_000

/** Columns of a table named `t`, with the hash of the catalog that priced the call. */
export const callColumns =
  "t.*, (SELECT k.hash FROM catalogs k WHERE k.id = t.catalog_id) AS catalog"

/** `CallStore.search`. */
export const searchCalls =
  <S extends Schema.Constraint>(sql: PgClient.PgClient, row: S) =>
  (userId: UserId | null, filter: CallFilter) => {
    const { before, since, traceId, until } = filter
    const filters = [
      ...when(filter.outcome, (outcome) => sql`t.outcome = ${outcome}`),
      ...when(filter.apiKeyId, (id) => sql`t.api_key_id = ${id}`),
      ...when(filter.vendor, (vendor) => sql`t.vendor = ${vendor}`),
      ...when(filter.model, (model) => sql`t.model = ${model}`),
      ...when(filter.minCost, (cost) => sql`t.captured >= ${cost}`),
      ...when(filter.maxCost, (cost) => sql`t.captured <= ${cost}`)
    ]
    // Selects the days to read, and the part of each
    const range = [
      ...when(since, (at) => sql`c.created_at >= ${toDate(at)}`),
      ...when(until, (at) => sql`c.created_at < ${toDate(at)}`)
    ]
    const ids = [
      userId === null ? sql`true` : sql`c.user_id = ${userId}`,
      ...when(before, (id) => sql`c.id < ${id}`),
      ...when(since, (at) => sql`c.id >= ${idAt(DateTime.toEpochMillis(at) - idSkewMillis)}`),
      ...when(until, (at) => sql`c.id < ${idAt(DateTime.toEpochMillis(at) + idSkewMillis)}`)
    ]
    const list = (conditions: ReadonlyArray<Statement.Fragment>) =>
      sql`SELECT * FROM calls c WHERE ${sql.and(conditions)} ORDER BY c.id DESC`
    // A BRIN index shows which parts of the table may contain the trace
    const traced = (id: string) =>
      sql`(SELECT * FROM calls c WHERE ${sql.and([sql`c.trace_id = ${id}`, ...range])} OFFSET 0)`
    const newest = (first: number) => {
      const since = newestSince(first)
      return list([
        ...ids,
        ...range,
        sql`c.id >= ${idAt(since)}`,
        sql`c.created_at >= ${new Date(since - idSkewMillis)}`,
        ...when(before, () => sql`c.created_at <= ${new Date(first + idSkewMillis)}`)
      ])
    }
    const scan = scanList(sql)
    return Effect.flatMap(DateTime.now, (now) =>
      scan({
        ...(userId === null ? {} : { user: userId }),
        row,
        columns: sql.literal(callColumns),
        key: "id",
        ...(traceId === undefined
          ? {
              candidates: list([...ids, ...range]),
              newest: newest(
                Math.min(
                  DateTime.toEpochMillis(until ?? now),
                  before === undefined ? Infinity : idMillis(before)
                )
              )
            }
          : {
              candidates: sql`SELECT * FROM ${traced(traceId)} c WHERE ${sql.and(ids)} ORDER BY c.id DESC`
            }),
        filters,
        limit: filter.limit
      })
    )
  }
