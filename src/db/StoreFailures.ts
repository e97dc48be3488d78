import { Cause, Duration, Effect, Option, Result, Schedule, Schema } from "effect"
import { SqlError } from "effect/sql"
import { StoreUnavailable } from "../domain/Problem.ts"
import { storeRetries } from "../domain/Retries.ts"
import { isLostStatement } from "./LostStatements.ts"

const decodeCause = Schema.decodeUnknownOption(Schema.Struct({ code: Schema.String }))

/** The SQLSTATE that the server reported, if the failure came from the server. */
export const sqlState = (error: SqlError.SqlError): Option.Option<string> =>
  Option.map(decodeCause(error.reason.cause), (cause) => cause.code)

/**
 * SQLSTATEs after which a later retry may succeed: shutting down or starting, a standby (after a failover), a session
 * that was idle for too long; out of disk, memory or connections (53); a system error (58).
 */
const transientState = /^(?:57P0[1235]|25006|25P03|53...|58...)$/u

/** States in which a reachable server refuses writes. */
const refusal = /^(?:25006|53[124]..|58...)$/u
let refusals = { count: 0, last: new StoreUnavailable({ cause: "no statement was refused" }) }

/** The number of refused statements and the last of them, over all stores of this program. */
export const storeRefusals = (): typeof refusals => refusals

const isRefusal = (thrown: unknown): boolean =>
  SqlError.isSqlError(thrown) && Option.exists(sqlState(thrown), (state) => refusal.test(state))

const isTransient = (error: SqlError.SqlError): boolean =>
  error.isRetryable ||
  // The store accepted a connection at startup, so the fault may be temporary
  error.reason.operation === "connect" ||
  Option.exists(sqlState(error), (state) => transientState.test(state)) ||
  isLostStatement(error)

/**
 * Narrows the failures of a store call to `StoreUnavailable`, for failures after which a retry can help. Anything else
 * (a broken statement, a row that does not decode) is a defect of this program. A connection that breaks within a
 * transaction arrives as a defect, because its rollback fails too, but counts as transient.
 */
export const storeFailures = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, DomainFailure<E> | StoreUnavailable, R> =>
  Effect.catchCause(self, (cause): Effect.Effect<never, DomainFailure<E> | StoreUnavailable> => {
    const broken = cause.reasons.map(thrownOf).find(isTransientSqlError)
    if (broken !== undefined) {
      const last = new StoreUnavailable({ cause: broken })
      if (isRefusal(broken)) refusals = { count: refusals.count + 1, last }
      return Effect.fail(last)
    }
    const failed = Cause.findError(cause)
    if (Result.isFailure(failed)) return Effect.failCause(failed.failure)
    return isDomainFailure(failed.success)
      ? Effect.fail(failed.success)
      : Effect.die(failed.success)
  })

/**
 * For an actor's write that must not be lost: retries until the store is available again. Safe because every such write
 * is conditional, so a repeat after a commit without a response changes nothing. `restore` makes the waits
 * interruptible, but not the write.
 */
export const retryStore = <A, R>(
  self: Effect.Effect<A, StoreUnavailable, R>,
  restore?: (wait: Effect.Effect<void>) => Effect.Effect<void>
): Effect.Effect<A, never, R> =>
  // The schedule is created only after the first failure: most calls succeed, and it would cost more than they do
  Effect.catch(self, (error) => {
    let next: Effect.Effect<A, StoreUnavailable, R> = Effect.fail(error)
    const again = Effect.suspend(() => {
      const current = next
      next = self
      return current
    })
    const schedule =
      restore === undefined
        ? storeRetries
        : Schedule.modifyDelay(storeRetries, ({ duration }) =>
            Effect.as(restore(Effect.sleep(duration)), Duration.zero)
          )
    // Never dies, because the schedule has no end
    return Effect.orDie(Effect.retry(again, schedule))
  })

const thrownOf = (reason: Cause.Reason<unknown>): unknown =>
  reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined

const isTransientSqlError = (thrown: unknown): boolean =>
  SqlError.isSqlError(thrown) && isTransient(thrown)

type DomainFailure<E> = Exclude<E, SqlError.SqlError | Schema.SchemaError>

const isDomainFailure = <E>(error: E): error is DomainFailure<E> =>
  !SqlError.isSqlError(error) && !Schema.isSchemaError(error)
