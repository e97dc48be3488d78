import type { PgClient } from "@effect/sql-pg"
import { Effect, Option, Schema } from "effect"
import type { Statement } from "effect/sql"
import { scanList, when } from "../db/ListScan.ts"
import type { ScannedPage } from "../db/ListScan.ts"
import { Micro, rowsOf, Time } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

export class UserRow extends Schema.Class<UserRow>("UserRow")({
  id: UserId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  createdAt: Time,
  disabledAt: Schema.NullOr(Time),
  /** The wallet's alert threshold. */
  triggerThreshold: Micro,
  /** `null`: the configured limits apply. */
  rateLimitPerMinute: Schema.NullOr(Schema.Int),
  concurrentTasks: Schema.NullOr(Schema.Int)
}) {}

/** SQL that compares like `foldAddress`. `lower` makes the query use the index, but folds by the server's locale. */
export const hasAddress = (sql: PgClient.PgClient, email: string) => sql`
  lower(email) = lower(${email}) AND translate(email, ${capitals}, ${capitals.toLowerCase()})
    = translate(${email}::text, ${capitals}, ${capitals.toLowerCase()})`
const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/** `alerted`: below the threshold of the balance alert. `negative`: below zero because of late charges. */
export type UserState = "active" | "disabled" | "alerted" | "negative"

/** Absent members do not filter. */
export interface UserFilter {
  /** A user id, or a part of the address or the name. */
  readonly text?: string | undefined
  readonly state?: UserState | undefined
  /**
   * Default: newest first, in pages. `balance` sorts by the lowest balance; `spent` by the most spent this month. These
   * two return only the beginning of the list, without further pages.
   */
  readonly sort?: "newest" | "balance" | "spent" | undefined
}

/** A user in the operator's list. */
export class ListedUser extends UserRow.extend<ListedUser>("ListedUser")({
  settled: Micro,
  held: Micro,
  /** Charged since the beginning of the month (UTC). */
  spent: Micro
}) {}

export type UserListing = PageRequest & UserFilter & { readonly month: string }

const isUserId = Schema.is(UserId)

/** Lists users with their balances. */
export const listUsers = (
  sql: PgClient.PgClient
): ((listing: UserListing) => Effect.Effect<ScannedPage<ListedUser>, StoreUnavailable>) => {
  const scan = scanList(sql)
  const spentOf = (month: string) => sql`
    (SELECT coalesce(sum(d.credits), 0)::bigint FROM usage_days d
      WHERE d.user_id = t.id AND d.day >= ${month}::date) AS spent`
  const users = sql`
    SELECT u.*, w.settled, w.held, w.state, w.trigger_threshold
    FROM users u JOIN wallets w ON w.user_id = u.id WHERE u.deleted_at IS NULL`
  const inState = (state: UserState): Statement.Fragment => {
    switch (state) {
      case "active":
        return sql`t.disabled_at IS NULL`
      case "disabled":
        return sql`t.disabled_at IS NOT NULL`
      case "alerted":
        return sql`t.state = 'ALERTED'`
      case "negative":
        return sql`t.settled < 0`
    }
  }
  const contains = (text: string) =>
    sql`strpos(lower(t.email || ' ' || coalesce(t.name, '')), lower(${text}::text)) > 0`
  const filtersOf = ({ state, text }: UserFilter) => [
    ...when(state, inState),
    ...when(text, (it) => (isUserId(it) ? sql`t.id = ${it}::uuid` : contains(it)))
  ]
  const whole = (rows: Statement.Fragment) =>
    sql`${rows}`.pipe(
      rowsOf(ListedUser),
      Effect.map((found): ScannedPage<ListedUser> => ({ rows: found, end: null })),
      storeFailures
    )
  /** Looks up the user with this id or address through an index. */
  const exact = ({ month, state, text = "" }: UserListing) => {
    const one = isUserId(text) ? sql`u.id = ${text}::uuid` : hasAddress(sql, text)
    const conditions = [sql`true`, ...when(state, inState)]
    return whole(sql`
      SELECT t.*, ${spentOf(month)} FROM (${users} AND ${one}) t WHERE ${sql.and(conditions)}`)
  }
  const newest = (listing: UserListing) => {
    const before = Option.getOrUndefined(listing.before)
    return scan({
      row: ListedUser,
      columns: sql`t.*, ${spentOf(listing.month)}`,
      key: "id",
      candidates: sql`${users} AND ${sql.and([sql`true`, ...when(before, (id) => sql`u.id < ${id}::uuid`)])}
        ORDER BY u.id DESC`,
      filters: filtersOf(listing),
      limit: listing.limit
    })
  }
  const lowest = (listing: UserListing) =>
    whole(sql`
      SELECT t.*, ${spentOf(listing.month)} FROM (
        SELECT t.* FROM (${users}) t WHERE ${sql.and([sql`true`, ...filtersOf(listing)])}
        ORDER BY t.settled - t.held, t.id DESC LIMIT ${listing.limit}
      ) t ORDER BY t.settled - t.held, t.id DESC`)
  const topSpenders = (listing: UserListing) =>
    whole(sql`
      SELECT t.*, s.spent FROM (
        SELECT d.user_id, sum(d.credits)::bigint AS spent FROM usage_days d
        WHERE d.day >= ${listing.month}::date GROUP BY d.user_id
      ) s JOIN (${users}) t ON t.id = s.user_id
      WHERE ${sql.and([sql`true`, ...filtersOf(listing)])}
      ORDER BY s.spent DESC, t.id DESC LIMIT ${listing.limit}`)
  const sorted = (listing: UserListing) => {
    if (listing.sort === "balance") return lowest(listing)
    return listing.sort === "spent" ? topSpenders(listing) : newest(listing)
  }
  return (listing) =>
    listing.text === undefined || Option.isSome(listing.before)
      ? sorted(listing)
      : Effect.flatMap(exact(listing), (found) =>
          found.rows.length > 0 ? Effect.succeed(found) : sorted(listing)
        )
}

const Owner = Schema.Struct({ id: UserId, email: Schema.NullOr(Schema.String) })

/** Addresses by user id; null if the user was deleted. */
export const ownersIn = (sql: PgClient.PgClient) => (ids: ReadonlyArray<UserId>) =>
  sql`
    SELECT id, CASE WHEN deleted_at IS NULL THEN email END AS email FROM users
    WHERE id = ANY (${[...new Set(ids)]}::uuid[])`.pipe(
    rowsOf(Owner),
    Effect.map((rows) => new Map(rows.map(({ email, id }) => [id, email]))),
    storeFailures
  )
