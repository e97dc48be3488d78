import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime, Option } from "effect"
import type { ToolUses } from "../catalog/ToolUses.ts"
import { settle } from "../db/BatchWrites.ts"
import type { Alerting } from "../db/BatchWrites.ts"
import { amounts, composite, integers, texts, uuids } from "../db/Columns.ts"
import { idMillis } from "../db/ListScan.ts"
import type { ScannedPage } from "../db/ListScan.ts"
import { Micro, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { SkipReason } from "../domain/Candidate.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { UserId } from "../domain/Ids.ts"
import type { EndpointId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { overSpendLimit, SpendRefusal } from "../domain/SpendLimit.ts"
import type { OverSpendLimit } from "../domain/SpendLimit.ts"
import type { Principal } from "../users/ApiKeys.ts"
import { holdsLeft } from "./CallHoldStore.ts"
import type { HoldsLeft } from "./CallHoldStore.ts"
import { callColumns, searchCalls } from "./CallSearchStore.ts"
import type { CallFilter } from "./CallSearchStore.ts"

/** A metered call before it goes upstream: its owner, its hold, and what its receipt will contain. */
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
  /** Which secret of the key: the key may have been rotated since it was recognized. ADR 0190. */
  readonly rotation: number
  /** The rate of its key was checked for this call, and these models, which the key allowed. */
  readonly checked?: Principal["limits"]
  /** The number of the catalog that it is priced by; `null`: that is not stored. */
  readonly catalogId: number | null
}

/**
 * Why a call may not go upstream: its key was revoked, has expired or has other limits than were checked, or the
 * balance or the spend limit of the key is too low.
 */
export type CallRefusal = "key" | "balance" | OverSpendLimit

/** How a call ended. */
export interface CallEnd {
  readonly id: string
  readonly user: UserId
  readonly captured: Credits
  readonly outcome: "settled" | "released" | "lost"
  readonly status: number | null
  readonly account: string | null
  readonly usage: Readonly<Record<string, number | boolean | string | ToolUses>> | null
  /** The vendor's id of the request, which its bill may name. */
  readonly requestId?: string | undefined
  /** Of a stream, to its first piece. */
  readonly firstTokenMillis?: number | undefined
  /** Of a call that named an alias: that name, the model that did it and those that did not. */
  readonly alias?:
    | {
        readonly alias: string
        readonly vendor: string
        readonly model: string
        readonly route: string
        readonly skipped: ReadonlyArray<typeof SkippedCall.Type>
      }
    | undefined
}

const SkippedCall = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  reason: SkipReason
})

/** The usage of a call as a parameter, with what belongs to its receipt beside it. */
export const usageText = (
  { alias, firstTokenMillis, requestId: request, usage }: CallEnd,
  catalog: number | null = null
): string | null => {
  if (
    request === undefined &&
    catalog === null &&
    firstTokenMillis === undefined &&
    alias === undefined
  ) {
    return usage && JSON.stringify(usage)
  }
  return JSON.stringify({
    ...usage,
    request,
    catalog: catalog ?? undefined,
    first_token_ms: firstTokenMillis,
    alias
  })
}

/** What goes into one transaction: the calls that have ended, and those that begin. */
export interface CallBatch extends Alerting {
  readonly ends: ReadonlyArray<CallEnd>
  readonly starts: ReadonlyArray<CallStart>
  readonly processId: string
}

export interface CallBatchOutcome {
  /** The calls that may not go upstream. */
  readonly refused: ReadonlyMap<string, CallRefusal>
  /** What the spend limit of its key leaves, by call. */
  readonly left: ReadonlyMap<string, Credits>
  /** Endpoints to notify of a `balance.low`. */
  readonly endpoints: ReadonlyArray<EndpointId>
}

/** An open call that no process runs. */
export interface OrphanCall {
  readonly id: string
  readonly userId: UserId
}

export class CallRow extends Schema.Class<CallRow>("CallRow")({
  id: Schema.String,
  userId: UserId,
  vendor: Schema.String,
  model: Schema.NullOr(Schema.String),
  route: Schema.String,
  outcome: Schema.Literals(["settled", "released", "lost"]),
  /** Another process took this one for dead and released the hold; the call was charged when it ended. */
  chargedLate: Schema.Boolean,
  httpStatus: Schema.NullOr(Schema.Int),
  held: Micro,
  captured: Micro,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  /** The vendor account that was called; null: none, or the simulator. */
  accountId: Schema.NullOr(Schema.String),
  /** Of a stream: from the beginning of the call to its first piece. */
  firstTokenMs: Schema.NullOr(Schema.Int),
  sandbox: Schema.Boolean,
  /** The name that was asked for, when `model` is one of an alias, and the models that were passed over. */
  alias: Schema.NullOr(Schema.Struct({ alias: Schema.String, skipped: Schema.Array(SkippedCall) })),
  /** The hash of the catalog that it was priced by. */
  catalog: Schema.NullOr(Schema.String),
  traceId: Schema.NullOr(Schema.String),
  createdAt: Time,
  endedAt: Time
}) {}

/** Metered calls: held and settled, many in one statement. ADR 0072. */
export class CallStore extends Context.Service<
  CallStore,
  {
    /** Settles and releases what has ended, then holds for all calls that the balance covers; publishes alerts. */
    readonly write: (batch: CallBatch) => Effect.Effect<CallBatchOutcome, StoreUnavailable>
    /**
     * Open calls of dead processes, and those opened before `before`. A call that was opened since then
     * shows that its process lives, whatever its heartbeat says.
     */
    readonly orphans: (
      heartbeatSince: DateTime.Utc,
      before: DateTime.Utc,
      limit: number
    ) => Effect.Effect<ReadonlyArray<OrphanCall>, StoreUnavailable>
    /** What a process holds; nothing when it is not registered. */
    readonly holdsLeft: (processId: string) => Effect.Effect<HoldsLeft, StoreUnavailable>
    /** Of a user, or of all; newest first. */
    readonly search: (
      userId: UserId | null,
      filter: CallFilter
    ) => Effect.Effect<ScannedPage<CallRow>, StoreUnavailable>
    readonly find: (
      userId: UserId,
      id: string
    ) => Effect.Effect<Option.Option<CallRow>, StoreUnavailable>
  }
>()("gateway/passthrough/CallStore") {
  static readonly layer = Layer.effect(
    CallStore,
    Effect.map(PgClient.PgClient, (sql) =>
      CallStore.of({
        write: write(sql),
        orphans: (heartbeatSince, before, limit) =>
          sql`
            SELECT h.id, h.user_id FROM holds h
            WHERE h.kind = 'call' AND h.call IS NOT NULL AND (h.created_at < ${toDate(before)} OR NOT EXISTS (
              SELECT 1 FROM processes p
              WHERE p.id = h.process_id AND (p.heartbeat_at >= ${toDate(heartbeatSince)}
                OR p.left_at IS NULL AND h.created_at >= ${toDate(heartbeatSince)})
            ))
            LIMIT ${limit}`.pipe(rowsOf(Orphan), storeFailures),
        holdsLeft: holdsLeft(sql),
        search: searchCalls(sql, CallRow),
        find: (userId, id) =>
          sql`
            SELECT ${sql.literal(callColumns)} FROM calls t
            WHERE t.id = ${id} AND t.user_id = ${userId}
              AND t.created_at >= to_timestamp(${idMillis(id) / 1000 - aroundSeconds})
              AND t.created_at <= to_timestamp(${idMillis(id) / 1000 + aroundSeconds})`.pipe(
            rowsOf(CallRow),
            Effect.map(Array.head),
            storeFailures
          )
      })
    )
  )
}

/** An id is made when its call begins, by a clock that may differ: other days need not be read. */
const aroundSeconds = 3600

const Orphan = Schema.Struct({ id: Schema.String, userId: UserId })

const Notice = Schema.Struct({
  id: Schema.NullOr(Schema.String),
  refused: Schema.NullOr(Schema.Literals(["key", "balance", ...SpendRefusal.literals])),
  userId: Schema.NullOr(UserId),
  available: Schema.NullOr(Micro),
  threshold: Schema.NullOr(Micro)
})

const nothing: CallBatchOutcome = { refused: new Map(), left: new Map(), endpoints: [] }

const write = (sql: PgClient.PgClient) => (batch: CallBatch) =>
  Effect.map(
    settle(sql, batch, (alerts) =>
      sql.unsafe<object>(statement, parametersOf(batch, alerts)).pipe(rowsOf(Notice))
    ),
    ({ endpoints, rows }) => (rows.length === 0 ? nothing : outcomeOf(rows, endpoints, batch.now))
  )

const outcomeOf = (
  notices: ReadonlyArray<typeof Notice.Type>,
  endpoints: ReadonlyArray<EndpointId>,
  now: DateTime.Utc
): CallBatchOutcome => {
  const refused = new Map<string, CallRefusal>()
  const left = new Map<string, Credits>()
  for (const { available, id } of notices) {
    if (id !== null && available !== null) left.set(id, available)
  }
  for (const { id, refused: why } of notices) {
    if (id === null || why === null) continue
    const isOther = why === "key" || why === "balance"
    refused.set(id, isOther ? why : overSpendLimit(why, left.get(id) ?? zero, now))
  }
  return { refused, left, endpoints }
}

const statement = `SELECT * FROM calls_write(
  ${composite("ended_calls", 1, 7)}, ${composite("started_calls", 8, 5)},
  $13, make_interval(secs => $14), $15, $16)`

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

/** What the receipt of a call contains, kept with its hold: another process may have to write it. */
const noteOf = (start: CallStart): string => {
  const { catalogId: catalog, checked, key, model, rotation, route, sandbox, trace, vendor } = start
  return JSON.stringify({ key, vendor, model, route, sandbox, trace, catalog, checked, rotation })
}
