import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

/** One member of many items as an array of Postgres, read by the server in a fifth of the time of JSON. */
export const column = <A>(items: ReadonlyArray<A>, oid: number, value: (item: A) => unknown) =>
  Result.getOrThrow(PgTypes.array(items.map(value), oid))
