import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import type { ToolUses } from "../catalog/ToolUses.ts"
import { settle } from "../db/BatchWrites.ts"
import type { Alerting } from "../db/BatchWrites.ts"
import { amounts, composite, integers, texts, uuids } from "../db/Columns.ts"
import { idMillis } from "../db/ListScan.ts"
import { Micro, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { UserId } from "../domain/Ids.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { overSpendLimit, SpendRefusal } from "../domain/SpendLimit.ts"
import type { OverSpendLimit } from "../domain/SpendLimit.ts"
import { SkipReason } from "../domain/task/Candidate.ts"
import type { Principal } from "../users/ApiKeys.ts"
import { holdsLeft } from "./CallHoldStore.ts"
import { callColumns, searchCalls } from "./CallSearchStore.ts"

/** A metered call before it goes upstream: its owner, its hold, and the contents of its receipt. */
export interface CallStart {
  readonly id: string
  readonly user: UserId
  readonly key: string
  readonly amount: Credits
  readonly trace: string
  readonly vendor: string
  readonly model: string | null
  readonly route: string
  readonly sandbox: boolean
  /** Identifies the secret of the key, which may have been rotated since it was authenticated. ADR 0190. */
  readonly rotation: number
  /** The limits that were checked for this call: the key's rate and the allowed models. */
  readonly checked?: Principal["limits"]
  /** The number of the catalog that prices it; `null` if it is not stored. */
  readonly catalogId: number | null
}

/**
 * Why a call may not go upstream: its key was revoked, has expired or has other limits than those that were checked, or
 * the balance or the key's spend limit is too low.
 */
export type CallRefusal = "key" | "balance" | OverSpendLimit

/** A running call whose hold is to be raised. ADR 0306. */
export interface CallRaise {
  readonly id: string
  readonly user: UserId
  /** The new total amount of the hold. */
  readonly amount: Credits
}

/** How a call ended. */
export interface CallEnd {
  readonly id: string
  readonly user: UserId
  /** At most the amount that is held. */
  readonly captured: Credits
  /** The cost above that amount, charged as a late charge. */
  readonly beyond?: Credits | undefined
  readonly outcome: "settled" | "released" | "lost"
  readonly status: number | null
  readonly account: string | null
  readonly usage: Readonly<Record<string, number | boolean | string | ToolUses>> | null
  /** The vendor's request id, which its bill may list. */
  readonly requestId?: string | undefined
  /** For a stream: milliseconds to its first piece. */
  readonly firstTokenMillis?: number | undefined
  /**
   * The model that responded, if the hold does not name it. For a call that named an alias, also the alias and the
   * skipped models.
   */
  readonly alias?:
    | {
        readonly alias?: string
        readonly vendor: string
        readonly model: string
        readonly route: string
        readonly skipped?: ReadonlyArray<typeof SkippedCall.Type>
      }
    | undefined
}

const SkippedCall = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  reason: SkipReason
})

/** The usage of a call as a parameter, with other contents of its receipt. */
export const usageText = (
  { alias, beyond, firstTokenMillis, requestId: request, usage }: CallEnd,
  catalog: number | null = null
): string | null => {
  if (
    request === undefined &&
    catalog === null &&
    firstTokenMillis === undefined &&
    alias === undefined &&
    beyond === undefined
  ) {
    return usage && JSON.stringify(usage)
  }
  return JSON.stringify({
    // Must be the first member, because `calls_write` searches for it there
    beyond: beyond?.toString(),
    ...usage,
    request,
    catalog: catalog ?? undefined,
    first_token_ms: firstTokenMillis,
    alias
  })
}

/** The contents of one transaction: the calls that end, those whose holds are raised, and those that begin. */
export interface CallBatch extends Alerting {
  readonly ends: ReadonlyArray<CallEnd>
  readonly raises: ReadonlyArray<CallRaise>
  readonly starts: ReadonlyArray<CallStart>
  readonly processId: string
}

export interface CallBatchOutcome {
  /** The calls that may not go upstream or may not continue. `lost`: the hold to raise no longer exists. */
  readonly refused: ReadonlyMap<string, CallRefusal | "lost">
  /** Credits left of the key's spend limit, by call. */
  readonly left: ReadonlyMap<string, Credits>
  /** Endpoints to notify of a `balance.low`. */
  readonly endpoints: ReadonlyArray<EndpointId>
}

export class CallRow extends Schema.Class<CallRow>("CallRow")({
  id: Schema.String,
  userId: UserId,
  vendor: Schema.String,
  model: Schema.NullOr(Schema.String),
  route: Schema.String,
  outcome: Schema.Literals(["settled", "released", "lost"]),
  /**
   * Whether it was paid by a late charge, because another process had released its hold or it cost more than it held.
   */
  chargedLate: Schema.Boolean,
  httpStatus: Schema.NullOr(Schema.Int),
  held: Micro,
  captured: Micro,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  /** The vendor account that was called; null for none or the simulator. */
  accountId: Schema.NullOr(Schema.String),
  /** For a stream: milliseconds from the beginning of the call to its first piece. */
  firstTokenMs: Schema.NullOr(Schema.Int),
  sandbox: Schema.Boolean,
  /** The requested alias, if `model` belongs to one, and the skipped models. */
  alias: Schema.NullOr(Schema.Struct({ alias: Schema.String, skipped: Schema.Array(SkippedCall) })),
  /** The hash of the catalog that priced it. */
  catalog: Schema.NullOr(Schema.String),
  traceId: Schema.NullOr(Schema.String),
  createdAt: Time,
  endedAt: Time
}) {}

/** Metered calls: held and settled, many in one statement. ADR 0072. */
export class CallStore extends Context.Service<CallStore>()("gateway/passthrough/CallStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    /**
     * Settles or releases ended calls, then raises holds, then takes holds for all starting calls that the balance
     * covers. Publishes alerts.
     */
    write: write(sql),
    /**
     * Open calls of dead processes, and those opened before `before`. A call opened since then proves that its
     * process is alive, whatever its heartbeat says.
     */
    orphans: (heartbeatSince: DateTime.Utc, before: DateTime.Utc, limit: number) =>
      sql`
        SELECT h.id, h.user_id FROM holds h
        WHERE h.kind = 'call' AND h.call IS NOT NULL AND (h.created_at < ${toDate(before)} OR NOT EXISTS (
          SELECT 1 FROM processes p
          WHERE p.id = h.process_id AND (p.heartbeat_at >= ${toDate(heartbeatSince)}
            OR p.left_at IS NULL AND h.created_at >= ${toDate(heartbeatSince)})
        ))
        LIMIT ${limit}`.pipe(rowsOf(Orphan), storeFailures),
    /** The holds of a process; none if it is not registered. */
    holdsLeft: holdsLeft(sql),
    /** The calls of one user or of all users, newest first. */
    search: searchCalls(sql, CallRow),
    find: (userId: UserId, id: string) =>
      sql`
        SELECT ${sql.literal(callColumns)} FROM calls t
        WHERE t.id = ${id} AND t.user_id = ${userId}
          AND t.created_at >= to_timestamp(${idMillis(id) / 1000 - aroundSeconds})
          AND t.created_at <= to_timestamp(${idMillis(id) / 1000 + aroundSeconds})`.pipe(
        rowsOf(CallRow),
        Effect.map(Array.head),
        storeFailures
      )
  }))
}) {
  static readonly layer = Layer.effect(CallStore, CallStore.make)
}

/**
 * The tolerance, in seconds, between the creation of a call's id and its begin by another clock. Days outside it need
 * not be read.
 */
const aroundSeconds = 3600

const Orphan = Schema.Struct({ id: Schema.String, userId: UserId })

const Notice = Schema.Struct({
  id: Schema.NullOr(Schema.String),
  refused: Schema.NullOr(Schema.Literals(["key", "balance", "lost", ...SpendRefusal.literals])),
  userId: Schema.NullOr(UserId),
  available: Schema.NullOr(Micro),
  threshold: Schema.NullOr(Micro)
})

const nothing: CallBatchOutcome = { refused: new Map(), left: new Map(), endpoints: [] }

const write = (sql: PgClient.PgClient) => (batch: CallBatch) =>
  Effect.map(
    settle(sql, batch, (alerts) =>
      sql.unsafe<object>(...statementOf(batch, alerts)).pipe(rowsOf(Notice))
    ),
    ({ endpoints, rows }) => (rows.length === 0 ? nothing : outcomeOf(rows, endpoints, batch.now))
  )

const outcomeOf = (
  notices: ReadonlyArray<typeof Notice.Type>,
  endpoints: ReadonlyArray<EndpointId>,
  now: DateTime.Utc
): CallBatchOutcome => {
  const refused = new Map<string, CallRefusal | "lost">()
  const left = new Map<string, Credits>()
  for (const { available, id } of notices) {
    if (id !== null && available !== null) left.set(id, available)
  }
  for (const { id, refused: why } of notices) {
    if (id === null || why === null) continue
    const isOther = why === "key" || why === "balance" || why === "lost"
    refused.set(id, isOther ? why : overSpendLimit(why, left.get(id) ?? zero, now))
  }
  return { refused, left, endpoints }
}

const ended = composite("ended_calls", 1, 7)
const started = composite("started_calls", 8, 5)
const rest = "$13, make_interval(secs => $14), $15, $16"

const statement = `SELECT * FROM calls_write(${ended}, ${started}, ${rest})`

const raisingStatement = `SELECT * FROM calls_write_raising(
  ${ended}, ${started}, ${composite("raised_calls", 17, 3)}, ${rest})`

const statementOf = (batch: CallBatch, alerts: boolean) => {
  const { raises } = batch
  const parameters = parametersOf(batch, alerts)
  if (raises.length === 0) return [statement, parameters] as const
  const raised = [
    uuids(raises, ({ id }) => id),
    uuids(raises, ({ user }) => user),
    amounts(raises, ({ amount }) => amount)
  ]
  return [raisingStatement, [...parameters, ...raised]] as const
}

const parametersOf = (
  { ends, now, processId, starts, throttleSeconds }: CallBatch,
  alerts: boolean
) => [
  uuids(ends, ({ id }) => id),
  uuids(ends, ({ user }) => user),
  amounts(ends, ({ captured }) => captured),
  texts(ends, ({ outcome }) => outcome),
  integers(ends, ({ status }) => status),
  texts(ends, ({ account }) => account),
  texts(ends, (end) => usageText(end)),
  uuids(starts, ({ id }) => id),
  uuids(starts, ({ user }) => user),
  texts(starts, ({ key }) => key),
  amounts(starts, ({ amount }) => amount),
  texts(starts, noteOf),
  processId,
  throttleSeconds,
  alerts,
  toDate(now)
]

/** The contents of a call's receipt, stored with its hold, because another process may have to write it. */
const noteOf = (start: CallStart): string => {
  const { catalogId: catalog, checked, key, model, rotation, route, sandbox, trace, vendor } = start
  return JSON.stringify({ key, vendor, model, route, sandbox, trace, catalog, checked, rotation })
}
