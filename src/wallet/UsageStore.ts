import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import type { Statement } from "effect/sql"
import { Micro, rowOf, rowsOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { UserId } from "../domain/Ids.ts"
import type { UsageGroup } from "../domain/Usage.ts"

/** The SQL expression of each group as text, sorted independently of collations. */
const columnOf: Readonly<Record<UsageGroup, string>> = {
  day: `d.day::text COLLATE "C"`,
  hour: `to_char(d.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C"`,
  user: `d.user_id::text COLLATE "C"`,
  key: `d.api_key_id COLLATE "C"`,
  vendor: `d.vendor COLLATE "C"`,
  model: `d.model COLLATE "C"`,
  sandbox: `d.sandbox::text COLLATE "C"`
}

/** Days are `YYYY-MM-DD` in UTC, both inclusive. Absent filters match all rows. */
export interface UsageQuery {
  readonly from: string
  readonly to: string
  readonly groups: ReadonlyArray<UsageGroup>
  /** Sorts by amount, the largest first; otherwise by the groups in ascending order. */
  readonly byAmount?: boolean
  readonly user?: UserId | undefined
  readonly key?: string | undefined
  readonly vendor?: string | undefined
  readonly model?: string | undefined
  readonly sandbox?: boolean | undefined
}

export interface UsagePage {
  /** The last row of the previous page. */
  readonly after: Option.Option<Pick<UsageRow, "group" | "credits">>
  readonly limit: number
}

/** Sums of one group. `group` has one value for each of the query's groups; it is empty where the row has none. */
export class UsageRow extends Schema.Class<UsageRow>("UsageRow")({
  group: Schema.Array(Schema.String),
  /** The number of completed tasks. */
  tasks: Schema.Int,
  /** The number of settled calls. */
  calls: Schema.Int,
  inputTokens: Schema.Int,
  inputCachedTokens: Schema.Int,
  outputTokens: Schema.Int,
  images: Schema.Int,
  videos: Schema.Int,
  audios: Schema.Int,
  seconds: Schema.Int,
  credits: Micro,
  /** The number of failed tasks and of calls that were not settled. */
  errors: Schema.Int,
  /** The histogram of the durations of tasks and calls. */
  durations: Schema.NullOr(Schema.Array(Schema.Int))
}) {}

const Rebuilt = Schema.Struct({ changed: Schema.Boolean })
const User = Schema.Struct({ userId: UserId })

/** The rollup of charges. The transaction that settles a task or a call also adds it here. */
export class UsageStore extends Context.Service<UsageStore>()("gateway/wallet/UsageStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    sums: sums(sql),
    /**
     * Recomputes one day of a user from tasks and receipts, and its hours as far as they are retained. Returns whether
     * the sums were wrong.
     */
    rebuild: (userId: UserId, day: string, hoursSince: DateTime.Utc) =>
      sql`
        SELECT usage_rebuild AS changed FROM usage_rebuild(${userId}, ${day}::date, ${toDate(hoursSince)})`.pipe(
        rowOf(Rebuilt),
        Effect.map(({ changed }) => changed),
        storeFailures
      ),
    /** Deletes hourly rows, at most `limit`; returns how many. */
    removeHours: (before: DateTime.Utc, limit: number) =>
      sql`
        DELETE FROM usage_hours WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM usage_hours WHERE hour < ${toDate(before)} ORDER BY hour LIMIT ${limit}))
        RETURNING true AS changed`.pipe(
        rowsOf(Rebuilt),
        Effect.map((rows) => rows.length),
        storeFailures
      ),
    /** User ids in ascending order. */
    users: (after: Option.Option<UserId>, limit: number) =>
      sql`
        SELECT user_id FROM wallets
        WHERE ${Option.getOrNull(after)}::uuid IS NULL OR user_id > ${Option.getOrNull(after)}::uuid
        ORDER BY user_id LIMIT ${limit}`.pipe(
        rowsOf(User),
        Effect.map((rows) => rows.map(({ userId }) => userId)),
        storeFailures
      )
  }))
}) {
  static readonly layer = Layer.effect(UsageStore, UsageStore.make)
}

function sums(sql: PgClient.PgClient) {
  return (query: UsageQuery, { after, limit }: UsagePage) => {
    const columns = sql.literal(query.groups.map((group) => columnOf[group]).join(", "))
    const rollup = query.groups.includes("hour") ? hours(sql, query) : days(sql, query)
    return sql`
      SELECT ARRAY[${columns}] AS "group",
        sum(d.tasks)::float8 AS tasks, sum(d.requests - d.tasks)::float8 AS calls,
        sum(d.input_tokens)::float8 AS input_tokens,
        sum(d.input_cached_tokens)::float8 AS input_cached_tokens,
        sum(d.output_tokens)::float8 AS output_tokens, sum(d.images)::float8 AS images,
        sum(d.videos)::float8 AS videos, sum(d.audios)::float8 AS audios,
        sum(d.seconds)::float8 AS seconds, sum(d.credits)::bigint AS credits, sum(d.errors)::float8 AS errors,
        durations_sum(d.durations)::float8[] AS durations
      FROM ${rollup} WHERE ${sql.and([
        ...(query.user === undefined ? [] : [sql`d.user_id = ${query.user}`]),
        ...(query.key === undefined ? [] : [sql`d.api_key_id = ${query.key}`]),
        ...(query.vendor === undefined ? [] : [sql`d.vendor = ${query.vendor}`]),
        ...(query.model === undefined ? [] : [sql`d.model = ${query.model}`]),
        ...(query.sandbox === undefined ? [] : [sql`d.sandbox = ${query.sandbox}`]),
        ...(query.byAmount === true
          ? []
          : behind(after, ({ group }) => sql`ARRAY[${columns}] > ${[...group]}::text[]`))
      ])}
      GROUP BY ${columns}
      HAVING ${sql.and([
        sql`true`,
        ...(query.byAmount === true
          ? behind(
              after,
              ({ credits, group }) =>
                sql`(sum(d.credits) < ${credits} OR sum(d.credits) = ${credits} AND ARRAY[${columns}] > ${[...group]}::text[])`
            )
          : [])
      ])}
      ORDER BY ${sql.literal(query.byAmount === true ? "sum(d.credits) DESC, " : "")}${columns} LIMIT ${limit}`.pipe(
      rowsOf(UsageRow),
      storeFailures
    )
  }
}

const behind = (
  after: UsagePage["after"],
  condition: (last: Pick<UsageRow, "group" | "credits">) => Statement.Fragment
) => Option.toArray(Option.map(after, condition))

/** The rows of the range: daily ones, or all hourly ones. */
const days = (sql: PgClient.PgClient, { from, to }: UsageQuery) =>
  sql`(SELECT * FROM usage_days o WHERE o.day >= ${from}::date AND o.day <= ${to}::date) d`

const hours = (sql: PgClient.PgClient, { from, to }: UsageQuery) => sql`
  (SELECT o.*, (o.hour AT TIME ZONE 'UTC')::date AS day FROM usage_hours o
    WHERE o.hour >= ${from}::timestamp AT TIME ZONE 'UTC'
      AND o.hour < (${to}::date + 1)::timestamp AT TIME ZONE 'UTC') d`
