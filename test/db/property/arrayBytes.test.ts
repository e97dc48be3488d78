import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  amounts,
  booleans,
  counts,
  integers,
  makeTypes,
  texts,
  uuids
} from "../../../src/db/Columns.ts"

const { OID } = PgTypes
const types = makeTypes()

const bytesOf = (parameter: PgTypes.Parameter): string =>
  Buffer.from(Result.getOrThrow(PgTypes.encodeParameter(parameter, types)) ?? []).toString("hex")

/** The bytes that the driver sends. */
const driversBytes = (oid: number, values: ReadonlyArray<unknown>): string => {
  const array = Result.getOrThrow(PgTypes.array(values, oid))
  return Buffer.from(Result.getOrThrow(PgTypes.encodeParameter(array)) ?? []).toString("hex")
}

/** Often the same value again, as in a batch. */
const columnOf = <A>(value: fc.Arbitrary<A>) =>
  fc.oneof(
    fc.array(fc.option(value), { maxLength: 60 }),
    fc
      .tuple(value, value, fc.array(fc.boolean(), { maxLength: 60 }))
      .map(([a, b, which]) => which.map((isA): A | null => (isA ? a : b)))
  )

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.string({ maxLength: 60 }),
  fc.string({ unit: fc.constantFrom("a", "é", "\u{1F600}", "\uD800"), maxLength: 50 })
)

describe("a column has the bytes that the driver would send", () => {
  const same = <A>(
    name: string,
    oid: number,
    value: fc.Arbitrary<A>,
    write: (items: ReadonlyArray<A | null>, get: (item: A | null) => A | null) => PgTypes.Parameter
  ) =>
    it(name, () => {
      fc.assert(
        fc.property(columnOf(value), (values) => {
          assert.strictEqual(bytesOf(write(values, (one) => one)), driversBytes(oid, values))
        }),
        { numRuns: 300 }
      )
    })

  same("of texts", OID.text, text, texts)
  same("of UUIDs", OID.uuid, fc.uuid(), uuids)
  same("of amounts", OID.int8, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), amounts)
  same("of integers", OID.int4, fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), integers)
  same("of booleans", OID.bool, fc.boolean(), booleans)
  it("of counts", () => {
    const count = fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })
    fc.assert(
      fc.property(columnOf(count), (values) => {
        const bigints = values.map((one) => (one === null ? null : BigInt(one)))
        assert.strictEqual(bytesOf(counts(values, (one) => one)), driversBytes(OID.int8, bigints))
      }),
      { numRuns: 300 }
    )
  })

  it("a text that is not a UUID is refused", () => {
    for (const wrong of ["", "x", `${"0".repeat(8)}-0000-0000-0000-00000000000g`]) {
      assert.throws(() => uuids([wrong], (one) => one))
    }
  })
})
