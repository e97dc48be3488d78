import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { Statement } from "effect/sql"
import type { UserId } from "../domain/Ids.ts"
import { listScanRowsMax } from "../domain/limits/Limits.ts"
import { rowOf, rowsOf } from "./Rows.ts"
import { storeFailures } from "./StoreFailures.ts"

/** Rows of a list, and where to continue if the scan ended first. */
export interface ScannedPage<Row> {
  readonly rows: ReadonlyArray<Row>
  /** The key of the last row read, if more rows may follow. Set only if the page has fewer rows than the limit. */
  readonly end: string | null
}

export interface ListScan<S extends Schema.Constraint> {
  /** The user, if the list belongs to one. */
  readonly user?: UserId
  readonly row: S
  /** The columns, of a table named `t`. */
  readonly columns: Statement.Fragment
  readonly key: "id" | "seq"
  /** Selects candidates by an index, in descending order of the key. */
  readonly candidates: Statement.Fragment
  /**
   * The same for the newest day of the list, whose rows come before all others. A page that they fill reads the
   * partitions of only a few days.
   */
  readonly newest?: Statement.Fragment
  /** Conditions on the table `t` that no index serves. */
  readonly filters: ReadonlyArray<Statement.Fragment>
  readonly limit: number
}

const End = Schema.Struct({ scanEnd: Schema.NullOr(Schema.String) })

/**
 * A page of a filtered list. Reads at most `listScanRowsMax` candidates, so that a filter with few matches costs no
 * more than any other. A single statement, because a row written between two statements would move the end of the page.
 * docs/reference/http.md#lists, ADR 0165.
 */
export const scanList =
  (sql: PgClient.PgClient) =>
  <S extends Schema.Constraint>({
    candidates,
    columns,
    filters,
    key,
    limit,
    newest,
    row,
    user
  }: ListScan<S>) => {
    const name = sql.literal(key)
    const pageOf = (some: Statement.Fragment, most = listScanRowsMax) => sql`
      SELECT ${columns} FROM (${some} LIMIT ${most}) t
      WHERE ${filters.length === 0 ? sql`true` : sql.and(filters)}
      ORDER BY t.${name} DESC LIMIT ${limit}`
    const rowsOfPage = (page: Statement.Fragment) =>
      sql`${page}`.pipe(
        rowsOf(row),
        Effect.map((rows) => ({ rows, end: null }))
      )
    // Candidates selected by another user's key or endpoint belong to that user, and their ids must not be shown
    const isOwn = user === undefined ? sql`true` : sql`t.user_id = ${user}`
    const scan = sql`
      SELECT t.${name}::text AS scan_end FROM (${candidates} LIMIT 1 OFFSET ${listScanRowsMax - 1}) t
      WHERE (SELECT count(*) FROM page) < ${limit} AND ${isOwn}`
    const scanned = sql`
      WITH page AS MATERIALIZED (${pageOf(candidates)}), scan AS MATERIALIZED (${scan})
      SELECT p.*, s.scan_end FROM (SELECT) one LEFT JOIN page p ON true LEFT JOIN scan s ON true
      ORDER BY p.${name} DESC`.pipe(
      Effect.flatMap((found) =>
        Effect.all({
          rows: rowsOf(row)(Effect.succeed(found.filter((it) => it[key] !== null))),
          end: Effect.map(rowOf(End)(Effect.succeed(found)), ({ scanEnd }) => scanEnd)
        })
      )
    )
    const all = filters.length === 0 ? rowsOfPage(pageOf(candidates)) : scanned
    if (newest === undefined) return storeFailures(all)
    // Reads no more rows than the page has, so that a filter with few matches reads hardly more than no filter
    return rowsOfPage(pageOf(newest, limit)).pipe(
      Effect.filterOrElse(
        (found) => found.rows.length >= limit,
        () => all
      ),
      storeFailures
    )
  }

/** A time before the first possible row of a list, in Unix milliseconds. */
export const newestSince = (first: number): number => first - 86_400_000

/** The lowest id of version 7 of this time. */
export const idAt = (millis: number): string => {
  const hex = Math.max(0, Math.trunc(millis)).toString(16).padStart(12, "0")
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** The time at the start of a version 7 id. */
export const idMillis = (id: string): number =>
  Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** The condition of a filter, if it is given. */
export const when = <A>(
  value: A | undefined,
  condition: (value: A) => Statement.Fragment
): ReadonlyArray<Statement.Fragment> => (value === undefined ? [] : [condition(value)])
