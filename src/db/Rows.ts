import { DateTime, Effect, Schema } from "effect"
import * as Credits from "../domain/Credits.ts"

/** A `timestamptz` column: the driver returns a `Date`. */
export const Time = Schema.DateTimeUtcFromDate

/** A `bigint` column of micro-credits. */
export const Micro = Credits.Credits

/** A `bytea` column. */
export const Bytes = Schema.Uint8Array

/** A UTC time as a parameter. */
export const toDate = (time: DateTime.Utc): Date => DateTime.toDateUtc(time)

/** Decodes every row of a statement. A row that does not decode is a bug. */
export const rowsOf = <S extends Schema.Constraint>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(schema))
  return <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
    Effect.flatMap(statement, (rows) => decode(rows))
}

/** Decodes the row of a statement that always returns one. */
export const rowOf = <S extends Schema.Constraint>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(Schema.NonEmptyArray(schema))
  return <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
    Effect.flatMap(statement, (rows) => Effect.map(decode(rows), ([row]) => row))
}
