import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"
import { ArrayBytes, arrayTypes } from "./ArrayBytes.ts"
import type { ElementType } from "./ArrayBytes.ts"

/** One member of many items as an array of Postgres, read by the server in a fifth of the time of JSON. */
const columnOf =
  <Value>(type: ElementType, put: (bytes: ArrayBytes, value: Value) => void) =>
  <A>(items: ReadonlyArray<A>, value: (item: A) => Value | null): PgTypes.Parameter => {
    const bytes = new ArrayBytes(type, items.length)
    for (const item of items) {
      const one = value(item)
      if (one === null) bytes.null()
      else put(bytes, one)
    }
    return {
      [PgTypes.ParameterTypeId]: PgTypes.ParameterTypeId,
      oid: arrayTypes[type].array,
      value: bytes
    }
  }

export const booleans = columnOf("bool", (bytes, value: boolean) => bytes.bool(value))
export const integers = columnOf("int4", (bytes, value: number) => bytes.int4(value))
export const amounts = columnOf("int8", (bytes, value: bigint) => bytes.int8(value))
/** Whole numbers that may be larger. */
export const counts = columnOf("int8", (bytes, value: number) => bytes.count(value))
export const texts = columnOf("text", (bytes, value: string) => bytes.text(value))
export const uuids = columnOf("uuid", (bytes, value: string) => bytes.uuid(value))

/** The driver's types, and the arrays that were written above. */
export const makeTypes = (): PgTypes.Registry => {
  const registry = PgTypes.makeRegistry()
  for (const { array: oid } of Object.values(arrayTypes)) {
    registry.register<unknown>(oid, {
      encode: (value) =>
        value instanceof ArrayBytes ? Result.succeed(value.bytes()) : PgTypes.encode(value, oid),
      decode: (bytes) => PgTypes.decode(bytes, oid, 1),
      write: (sink, value) =>
        value instanceof ArrayBytes
          ? Result.succeed(sink.raw(value.bytes()))
          : PgTypes.writeParameter(sink, {
              [PgTypes.ParameterTypeId]: PgTypes.ParameterTypeId,
              oid,
              value
            })
    })
  }
  return registry
}
