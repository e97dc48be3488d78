import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

/** One field of many items as a Postgres array, which the server reads in a fifth of the time of JSON. */
const columnOf =
  <Value>(elementOid: number) =>
  <A>(items: ReadonlyArray<A>, value: (item: A) => Value | null): PgTypes.Parameter =>
    Result.getOrThrow(
      PgTypes.array(
        items.map((item) => value(item)),
        elementOid
      )
    )

const { OID } = PgTypes

export const booleans = columnOf<boolean>(OID.bool)
export const integers = columnOf<number>(OID.int4)
export const amounts = columnOf<bigint>(OID.int8)
export const texts = columnOf<string>(OID.text)
export const uuids = columnOf<string>(OID.uuid)

/** Integers that may need more than 32 bits. */
export const counts = <A>(items: ReadonlyArray<A>, value: (item: A) => number) =>
  amounts(items, (item) => BigInt(value(item)))

/**
 * A batch as one argument of a function: a composite type with this number of columns, which are the parameters from
 * number `first` on.
 */
export const composite = (type: string, first: number, columns: number): string =>
  `row(${Array.from({ length: columns }, (_, n) => `$${first + n}`).join(", ")})::${type}`
