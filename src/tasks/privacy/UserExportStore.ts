import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, Stream } from "effect"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { UserId } from "../../domain/Ids.ts"
import { userExportRowsMax } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** One row of a user's data. Amounts are `bigint`s of micro-credits, times are `Date`s. */
export interface UserDataRow {
  /** The kind of row, such as `task`. */
  readonly object: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A part of the export: the columns with the user's own data, without secrets or hashes. */
interface Part {
  readonly object: string
  readonly table: string
  readonly columns: string
  /** The column with the user's id, the column that orders the rows, and that column's type. */
  readonly user: string
  readonly key: string
  readonly type: "uuid" | "text" | "bigint"
  readonly first: string
  /** Rows per read, for parts with large rows. */
  readonly rowsMax?: number
}

const noUuid = "00000000-0000-0000-0000-000000000000"
const byUuid = { user: "user_id", key: "id", type: "uuid", first: noUuid } as const
const byText = { user: "user_id", key: "id", type: "text", first: "" } as const
const once = { user: "user_id", key: "user_id", type: "uuid", first: noUuid } as const

const parts: ReadonlyArray<Part> = [
  {
    ...byUuid,
    object: "user",
    table: "users",
    user: "id",
    columns: "id, email, name, created_at"
  },
  {
    ...byText,
    object: "api_key",
    table: "api_keys",
    columns: "id, preview, name, scopes, created_at, expires_at, revoked_at, last_used_at"
  },
  {
    ...byText,
    object: "session",
    table: "sessions",
    columns: "id, method, address, created_at, last_seen_at, expires_at"
  },
  {
    ...byText,
    object: "passkey",
    table: "passkeys",
    columns: "id, name, created_at, last_used_at"
  },
  {
    ...once,
    object: "wallet",
    table: "wallets",
    columns: "settled AS settled_balance, held AS held_balance, trigger_threshold, state"
  },
  {
    object: "wallet_entry",
    table: "wallet_entries",
    user: "user_id",
    key: "seq",
    type: "bigint",
    first: "0",
    // Computes the amount as `shownAmount` of the ledger does
    columns: `seq::float8 AS seq, kind, (10000 * CASE kind
      WHEN 'hold' THEN floor(held_after / 10000.0) - floor((held_after - amount) / 10000.0)
      WHEN 'release' THEN floor((held_after + amount) / 10000.0) - floor(held_after / 10000.0)
      WHEN 'capture' THEN floor((settled_after + amount) / 10000.0) - floor(settled_after / 10000.0)
      WHEN 'late_charge' THEN floor((settled_after + amount) / 10000.0) - floor(settled_after / 10000.0)
      ELSE floor(settled_after / 10000.0) - floor((settled_after - amount) / 10000.0) END)::bigint AS amount,
      settled_after, held_after, subject_id AS task_id, note, trace_id, created_at`
  },
  {
    ...byUuid,
    object: "task",
    table: "tasks",
    columns: `id, api_key_id, vendor, model, action, status, body, metadata, result, error, sandbox, price AS held,
      captured, candidates, candidate, batch_id, trace_id, created_at, started_at, updated_at`
  },
  {
    ...byUuid,
    object: "call",
    table: "calls",
    columns: `id, api_key_id, vendor, model, route, outcome, charged_late, http_status, held, captured AS cost, usage,
      alias, sandbox, trace_id, created_at, ended_at`
  },
  {
    ...byUuid,
    object: "call_content",
    table: "call_contents",
    key: "call_id",
    columns: "call_id, sealed, created_at",
    rowsMax: 16
  },
  {
    ...byText,
    object: "file",
    table: "files",
    columns: "id, purpose, filename, bytes::float8 AS bytes, created_at, expires_at, deleted_at"
  },
  {
    ...byText,
    object: "batch_receipt",
    table: "batch_receipts",
    columns: `split_part(id, '.', 1) AS task_id, custom_id, model, outcome, http_status, captured AS cost, usage,
      request_id, created_at`
  },
  {
    ...byText,
    object: "webhook_endpoint",
    table: "webhook_endpoints",
    columns: "id, url, events, description, enabled, of_tasks, created_at, updated_at, deleted_at"
  },
  {
    ...byText,
    object: "webhook_delivery",
    table: "deliveries",
    columns: `id, endpoint_id, webhook_url, event_id, event_type AS type, task_id, status, attempts AS attempt_count,
      created_at, updated_at`
  },
  {
    ...byText,
    object: "audit_entry",
    table: "audit_entries",
    columns: `id, type, actor_type, actor_id, user_id, resource_id, changes, trace_id, created_at,
      CASE WHEN actor_user_id = user_id THEN ip_address END AS ip_address`
  }
]

/** The alias of the paging column, which is removed from the exported row. */
const pageKey = "key of the page"

const pageOf = (
  { object, rowsMax = userExportRowsMax }: Part,
  rows: ReadonlyArray<Readonly<Record<string, unknown>>>
) => {
  const last = rows.length < rowsMax ? undefined : rows.at(-1)
  const shown = rows.map((row): UserDataRow => ({
    object,
    fields: Object.fromEntries(Object.entries(row).filter(([name]) => name !== pageKey))
  }))
  return [shown, Option.map(Option.fromUndefinedOr(last), (row) => String(row[pageKey]))] as const
}

/** All stored data of a user. docs/reference/privacy.md#export */
export class UserExportStore extends Context.Service<
  UserExportStore,
  { readonly rows: (id: UserId) => Stream.Stream<UserDataRow, StoreUnavailable> }
>()("gateway/tasks/UserExportStore") {
  static readonly layer = Layer.effect(
    UserExportStore,
    Effect.map(PgClient.PgClient, (client) => {
      const sql = client.withoutTransforms()
      const rowsOf = (part: Part, id: UserId) =>
        Stream.paginate(part.first, (after) =>
          sql
            .unsafe<Record<string, unknown>>(
              `SELECT ${part.columns}, ${part.key}::text AS "${pageKey}" FROM ${part.table}
              WHERE ${part.user} = $1 AND ${part.key} > $2::${part.type}
              ORDER BY ${part.key} LIMIT ${part.rowsMax ?? userExportRowsMax}`,
              [id, after]
            )
            .pipe(
              Effect.map((rows) => pageOf(part, rows)),
              storeFailures
            )
        )
      return UserExportStore.of({
        rows: (id) => Stream.fromIterable(parts).pipe(Stream.flatMap((part) => rowsOf(part, id)))
      })
    })
  )
}
