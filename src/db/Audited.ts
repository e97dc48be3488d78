import type { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Option } from "effect"
import { makeAuditId } from "../domain/Ids.ts"
import { toDate } from "./Rows.ts"

/** The audit log entry of the current request. */
export interface PendingEntry {
  /** The operation's name in OpenAPI. */
  readonly type: string
  readonly actor: {
    readonly type: "operator" | "api_key" | "session" | "access_token"
    readonly id: string | null
    readonly userId: string | null
  }
  readonly ipAddress: string | null
  /** The user whose data are changed or read, if the request names one. */
  userId: string | null
  readonly resourceId: string | null
  readonly changes: Readonly<Record<string, unknown>>
  readonly traceId: string | null
  /** Set once a store has written the entry, or if there is none to write because nothing was changed or viewed. */
  isDone: boolean
}

/** The subject of a change. Needed if the request does not name it. */
export interface AuditSubject {
  /** Also the actor, for a sign-in. */
  readonly actor?: PendingEntry["actor"]
  readonly userId?: string
  readonly resourceId?: string
}

/** Set by the management API while it serves an audited request. ADR 0168. */
export const PendingAudit = Context.Reference<Option.Option<PendingEntry>>(
  "gateway/db/PendingAudit",
  { defaultValue: () => Option.none() }
)

/**
 * Writes the pending entry in the transaction of the change, so that neither exists without the other. With `None`
 * nothing was changed, so nothing is written. Without a pending entry the change is not audited.
 */
export const audited =
  <A>(sql: PgClient.PgClient, subjectOf: (outcome: A) => Option.Option<AuditSubject>) =>
  <E, R>(change: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const pending = Option.getOrUndefined(yield* PendingAudit)
      if (pending === undefined || pending.isDone) return yield* change
      const outcome = yield* sql.withTransaction(
        Effect.tap(change, (it) =>
          Option.match(subjectOf(it), {
            onNone: () => Effect.void,
            onSome: (subject) => writeEntry(sql, pending, subject)
          })
        )
      )
      pending.isDone = true
      return outcome
    })

const onPending = (set: (entry: PendingEntry) => void) =>
  Effect.map(PendingAudit, (pending) => {
    if (Option.isSome(pending)) set(pending.value)
  })

/** Records that the operator reads data of this user, whom the request does not name. */
export const readsOf = (userId: string) =>
  onPending((entry) => {
    entry.userId = userId
    entry.isDone = false
  })

/** Records that the operator reads data of several users, whom the request does not name. */
export const readsOfSome = onPending((entry) => {
  entry.isDone = false
})

/** Records that the request changes nothing, although its method is for writes. */
export const changesNothing = onPending((entry) => {
  entry.isDone = true
})

/** For a change that always happens, to the resource that the request names. */
export const named = () => Option.some<AuditSubject>({})

/** One entry. */
export const writeEntry = (
  sql: PgClient.PgClient,
  entry: PendingEntry,
  { actor = entry.actor, resourceId, userId }: AuditSubject = {}
) =>
  Effect.flatMap(
    DateTime.now,
    (now) => sql`
      INSERT INTO audit_entries (id, created_at, type, actor_type, actor_id, actor_user_id, ip_address,
        user_id, resource_id, changes, trace_id)
      VALUES (${makeAuditId(DateTime.toEpochMillis(now))}, ${toDate(now)}, ${entry.type},
        ${actor.type}, ${actor.id}, ${actor.userId}, ${entry.ipAddress},
        ${userId ?? entry.userId}, ${resourceId ?? entry.resourceId},
        ${JSON.stringify(entry.changes)}::jsonb, ${entry.traceId})`
  )
