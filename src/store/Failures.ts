import { Effect, Option, Schema } from "effect"
import { SqlError } from "effect/sql"
import { StoreUnavailable } from "../domain/Problem.ts"

const Cause = Schema.Struct({ code: Schema.String })
const decodeCause = Schema.decodeUnknownOption(Cause)

/** The SQLSTATE that the server reported, if the failure came from the server. */
export const sqlState = (error: SqlError.SqlError): Option.Option<string> =>
  Option.map(decodeCause(error.reason.cause), (cause) => cause.code)

/** Server states in which a retry later may work: shutting down, starting, out of connections. */
const transientStates = new Set(["57P01", "57P02", "57P03", "53300", "53400"])

const isTransient = (error: SqlError.SqlError): boolean =>
  error.isRetryable ||
  // The store was there at the start: whatever keeps it from taking a connection now may pass
  error.reason.operation === "connect" ||
  Option.exists(sqlState(error), (state) => transientStates.has(state))

/**
 * What a store call may fail with: `StoreUnavailable` when trying again can help. Anything else
 * (a broken statement, a row that does not decode) is a defect of ours.
 */
export const storeFailures = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, DomainFailure<E> | StoreUnavailable, R> =>
  Effect.catch(self, (error): Effect.Effect<never, DomainFailure<E> | StoreUnavailable> => {
    if (SqlError.isSqlError(error) && isTransient(error)) {
      return Effect.fail(new StoreUnavailable({ cause: error }))
    }
    return isDomainFailure(error) ? Effect.fail(error) : Effect.die(error)
  })

type DomainFailure<E> = Exclude<E, SqlError.SqlError | Schema.SchemaError>

const isDomainFailure = <E>(error: E): error is DomainFailure<E> =>
  !SqlError.isSqlError(error) && !Schema.isSchemaError(error)
