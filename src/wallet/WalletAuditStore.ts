import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { UserId } from "../domain/Ids.ts"

/**
 * A page of an audit round: the next `wallets` wallets after this one, with up to `entries` new ledger entries of each.
 */
export interface AuditPage {
  readonly after: Option.Option<UserId>
  readonly wallets: number
  readonly entries: number
  readonly now: DateTime.Utc
}

export interface AuditedPage {
  readonly wallets: number
  /** The next page starts after this wallet. `None`: this was the last page. */
  readonly last: Option.Option<UserId>
}

const Page = Schema.Struct({ wallets: Schema.Int, last: Schema.NullOr(UserId) })
const Count = Schema.Struct({ n: Schema.Int })
const Owner = Schema.Struct({ userId: UserId })
const driftingShown = 20
const Finished = Schema.Struct({ finishedAt: Time })

/** The audit methods of `WalletStore`. */
export const audits = (sql: PgClient.PgClient) => ({
  /** How many wallets the audit found to differ from their ledger or holds; must be 0. Cheap to read. */
  drift: sql`SELECT count(*)::int AS n FROM wallet_audits WHERE drifting`.pipe(
    rowsOf(Count),
    Effect.map((rows) => rows[0]?.n ?? 0),
    storeFailures
  ),
  /** The users of those wallets, at most 20. */
  drifting: sql`
    SELECT user_id FROM wallet_audits WHERE drifting ORDER BY user_id LIMIT ${driftingShown}`.pipe(
    rowsOf(Owner),
    Effect.map((rows) => rows.map(({ userId }) => userId)),
    storeFailures
  ),
  /** How many spend limits of keys have impossible counts; must be 0. Cheap to read. */
  budgetDrift: sql`SELECT drifting_budgets AS n FROM wallet_audit_rounds`.pipe(
    rowsOf(Count),
    Effect.map((rows) => rows[0]?.n ?? 0),
    storeFailures
  ),
  /** Compares spend limits with holds and usage, unless that happened within the last `seconds`. */
  auditBudgets: (now: DateTime.Utc, seconds: number) =>
    sql`
      UPDATE wallet_audit_rounds SET budgets_checked_at = ${toDate(now)},
        drifting_budgets = (SELECT key_budgets_drift FROM key_budgets_drift())
      WHERE budgets_checked_at IS NULL
        OR abs(extract(epoch FROM ${toDate(now)}::timestamptz - budgets_checked_at)) >= ${seconds}`.pipe(
      Effect.asVoid,
      storeFailures
    ),
  /** When the last audit of all wallets finished. */
  auditedAt: sql`SELECT finished_at FROM wallet_audit_rounds`.pipe(
    rowsOf(Finished),
    Effect.map((rows) => Option.map(Array.head(rows), (row) => row.finishedAt)),
    storeFailures
  ),
  /** When spend limits were last audited. */
  budgetsAuditedAt: sql`
    SELECT budgets_checked_at AS finished_at FROM wallet_audit_rounds
    WHERE budgets_checked_at IS NOT NULL`.pipe(
    rowsOf(Finished),
    Effect.map((rows) => Option.map(Array.head(rows), (row) => row.finishedAt)),
    storeFailures
  ),
  /** Compares the next page of wallets with their new ledger entries and open holds (ADR 0061). */
  audit: audit(sql),
  /** Records that a round has covered all wallets. */
  endAudit: (wallets: number, now: DateTime.Utc) =>
    sql`
      INSERT INTO wallet_audit_rounds (finished_at, wallets) VALUES (${toDate(now)}, ${wallets})
      ON CONFLICT (only_row) DO UPDATE SET finished_at = excluded.finished_at, wallets = excluded.wallets`.pipe(
      Effect.asVoid,
      storeFailures
    )
})

/**
 * A single statement, so that wallets, entries and holds are read from one snapshot. Writes only what changed. A wallet
 * with more new entries than a page holds is judged once the rest has been read.
 */
function audit(sql: PgClient.PgClient) {
  return ({ after, entries, now, wallets }: AuditPage) =>
    sql`
      WITH page AS (
        SELECT w.user_id, w.settled, w.held, w.entry_count, a.user_id IS NULL AS is_new, a.drifting,
          coalesce(a.seq, 0) AS seen, coalesce(a.settled, 0) AS settled_seen,
          coalesce(a.held, 0) AS held_seen, coalesce(a.chained, true) AS chained
        FROM wallets w LEFT JOIN wallet_audits a USING (user_id)
        WHERE ${Option.getOrNull(after)}::uuid IS NULL OR w.user_id > ${Option.getOrNull(after)}::uuid
        ORDER BY w.user_id LIMIT ${wallets}
      ), new_entries AS (
        SELECT p.user_id, e.seq, e.settled_by, e.held_by,
          p.seen + row_number() OVER next = e.seq
            AND p.settled_seen + sum(e.settled_by) OVER next = e.settled_after
            AND p.held_seen + sum(e.held_by) OVER next = e.held_after AS chained
        FROM page p CROSS JOIN LATERAL (
          SELECT x.seq, x.settled_after, x.held_after,
            CASE x.kind WHEN 'capture' THEN -x.amount WHEN 'late_charge' THEN -x.amount WHEN 'hold' THEN 0 WHEN 'release' THEN 0
              ELSE x.amount END AS settled_by,
            CASE x.kind WHEN 'hold' THEN x.amount WHEN 'capture' THEN -x.amount
              WHEN 'release' THEN -x.amount ELSE 0 END AS held_by
          FROM wallet_entries x WHERE x.user_id = p.user_id AND x.seq > p.seen
          ORDER BY x.seq LIMIT ${entries}
        ) e
        WINDOW next AS (PARTITION BY p.user_id ORDER BY e.seq)
      ), sums AS (
        SELECT user_id, max(seq) AS seq, sum(settled_by) AS settled_by, sum(held_by) AS held_by,
          bool_and(chained) AS chained, count(*) AS read
        FROM new_entries GROUP BY user_id
      ), open_holds AS (
        SELECT user_id, sum(amount) AS amount FROM holds
        WHERE user_id IN (SELECT user_id FROM page) GROUP BY user_id
      ), compared AS (
        SELECT p.*, coalesce(s.seq, p.seen) AS seq, p.settled_seen + coalesce(s.settled_by, 0) AS settled_sum,
          p.held_seen + coalesce(s.held_by, 0) AS held_sum, p.chained AND coalesce(s.chained, true) AS unbroken,
          coalesce(o.amount, 0) AS open, coalesce(s.read, 0) < ${entries}::int AS is_whole
        FROM page p LEFT JOIN sums s USING (user_id) LEFT JOIN open_holds o USING (user_id)
      ), results AS (
        SELECT f.*, NOT unbroken OR (is_whole AND NOT (
          seq = entry_count AND settled_sum = settled AND held_sum = held AND held = open)) AS differs
        FROM compared f
      ), written AS (
        INSERT INTO wallet_audits AS a (user_id, seq, settled, held, chained, drifting, checked_at)
        SELECT user_id, seq, settled_sum, held_sum, unbroken, differs, ${toDate(now)}::timestamptz FROM results
        WHERE is_new OR seq <> seen OR drifting IS DISTINCT FROM differs
        ON CONFLICT (user_id) DO UPDATE SET seq = excluded.seq, settled = excluded.settled,
          held = excluded.held, chained = excluded.chained, drifting = excluded.drifting,
          checked_at = excluded.checked_at
      )
      SELECT count(*)::int AS wallets, (SELECT user_id FROM page ORDER BY user_id DESC LIMIT 1) AS last
      FROM page`.pipe(
      rowsOf(Page),
      Effect.map(([row]): AuditedPage => ({
        wallets: row?.wallets ?? 0,
        last:
          row === undefined || row.wallets < wallets ? Option.none() : Option.fromNullOr(row.last)
      })),
      storeFailures
    )
}
