import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Option, Schema } from "effect"
import type { Cause } from "effect"
import { SqlError } from "effect/sql"
import { lostStatementRetries } from "../domain/Retries.ts"

const decodeFields = Schema.decodeUnknownOption(
  Schema.Struct({ code: Schema.String, routine: Schema.optionalKey(Schema.String) })
)

/**
 * Whether the server no longer has a prepared statement (after `DISCARD ALL`, or behind a pooler), or a migration has
 * changed its columns, or the connection is still in a transaction that such a statement aborted. The name of the
 * server's routine distinguishes these errors from errors raised by functions.
 */
export const isLostStatement = (error: unknown): boolean =>
  SqlError.isSqlError(error) &&
  Option.exists(
    decodeFields(error.reason.cause),
    ({ code, routine = "" }) =>
      (code === "26000" && routine === "FetchPreparedStatement") ||
      (code === "0A000" && routine === "RevalidateCachedQuery") ||
      (code === "25P02" && /^exec_[a-z]+_message$/u.test(routine))
  )

/** Longest wait for the connections of the pool that are in use. */
const cleanTimeout = Duration.seconds(1)

/**
 * Repeats a transaction that lost a statement, because it has changed nothing. (Outside a transaction, sql-pg itself
 * prepares a lost statement again.) The connection must not return to the pool unchanged, because sql-pg's own ROLLBACK
 * may be lost too.
 */
export const retryLostStatements = (
  sql: PgClient.PgClient,
  maxConnections: number
): PgClient.PgClient => {
  const { withTransaction } = sql
  const rollback = Effect.ignore(sql.unsafe("ROLLBACK").unprepared)
  // All at once, so that each gets a different connection
  const cleanPool = Effect.forEach(
    Array.from({ length: maxConnections }),
    () =>
      Effect.flatMap(sql.reserve, (session) =>
        session.executeUnprepared("ROLLBACK", [], undefined)
      ),
    { discard: true }
  ).pipe(Effect.scoped, Effect.timeout(cleanTimeout), Effect.ignore)

  const once = <A, E, R>(self: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      let ended: Cause.Cause<E> | undefined
      const work = Effect.tapCause(self, (cause) => {
        ended = cause
        return isLost(cause) ? rollback : Effect.void
      })
      return Effect.catchCauseIf(
        withTransaction(work),
        (cause) => isLost(cause) && !(ended !== undefined && isLost(ended)),
        // Its COMMIT or ROLLBACK was lost, so the transaction is aborted but still open
        (cause) => Effect.andThen(cleanPool, Effect.failCause(ended ?? cause))
      )
    })

  return Object.assign(sql, {
    withTransaction: <R, E, A>(self: Effect.Effect<A, E, R>) =>
      Effect.flatMap(Effect.serviceOption(sql.transactionService), (outer) =>
        // A savepoint ends with its transaction
        Option.isSome(outer)
          ? withTransaction(self)
          : Effect.retry(once(self), { ...lostStatementRetries, while: isLostStatement })
      )
  })
}

const isLost = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    isLostStatement(
      reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
    )
  )
