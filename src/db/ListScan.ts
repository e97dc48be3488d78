import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { Statement } from "effect/sql"
import type { UserId } from "../domain/Ids.ts"
import { listScanRowsMax } from "../domain/Limits.ts"
import { rowsOf } from "./Rows.ts"
import { storeFailures } from "./StoreFailures.ts"

/** Rows of a list, and where to go on when the scan ended before its rows did. */
export interface ScannedPage<Row> {
  readonly rows: ReadonlyArray<Row>
  /** The key of the last row that was read, when more may follow; only with less rows than the limit. */
  readonly end: string | null
}

export interface ListScan<S extends Schema.Constraint> {
  /** Whose list it is. */
  readonly user: UserId
  readonly row: S
  /** Of a table named `t`. */
  readonly columns: Statement.Fragment
  readonly key: "id" | "seq"
  /** Selects candidates by an index, in descending order of the key. */
  readonly candidates: Statement.Fragment
  /**
   * The same of the newest day that the list can begin with, all of which come before the others: a page that they
   * fill reads the partitions of few days.
   */
  readonly newest?: Statement.Fragment
  /** Conditions on a table named `t` that no index serves. */
  readonly filters: ReadonlyArray<Statement.Fragment>
  readonly limit: number
}

const End = Schema.Struct({ key: Schema.String })

/**
 * A page of a filtered list. Reads at most `listScanRowsMax` candidates, so that a filter that matches
 * little costs no more than any other. docs/reference/http.md#lists, ADR 0165.
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
    const read = (some: Statement.Fragment) =>
      sql`
        SELECT ${columns} FROM (${some} LIMIT ${listScanRowsMax}) t
        WHERE ${filters.length === 0 ? sql`true` : sql.and(filters)}
        ORDER BY t.${name} DESC LIMIT ${limit}`.pipe(rowsOf(row))
    return Effect.gen(function* () {
      if (newest !== undefined) {
        const rows = yield* read(newest)
        if (rows.length >= limit) return { rows, end: null }
      }
      const rows = yield* read(candidates)
      if (rows.length >= limit || filters.length === 0) return { rows, end: null }
      // Candidates that another user's key or endpoint selects are that user's: none of their ids is shown
      const [last] = yield* sql`
        SELECT t.${name}::text AS key FROM (${candidates} LIMIT 1 OFFSET ${listScanRowsMax - 1}) t
        WHERE t.user_id = ${user}`.pipe(rowsOf(End))
      return { rows, end: last?.key ?? null }
    }).pipe(storeFailures)
  }

/** A day before the first row of a list can have been made, in Unix milliseconds. */
export const newestSince = (first: number): number => first - 86_400_000

/** The lowest id of version 7 of this time. */
export const idAt = (millis: number): string => {
  const hex = Math.max(0, Math.trunc(millis)).toString(16).padStart(12, "0")
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** The time that an id of version 7 begins with. */
export const idMillis = (id: string): number =>
  Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** The condition of a filter that is given. */
export const when = <A>(
  value: A | undefined,
  condition: (value: A) => Statement.Fragment
): ReadonlyArray<Statement.Fragment> => (value === undefined ? [] : [condition(value)])
