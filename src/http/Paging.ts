import { Effect, Option, Schema } from "effect"
import { pageSizeDefault, pageSizeMax } from "../domain/Limits.ts"
import { invalid } from "../domain/Problem.ts"

/** `?cursor&limit` of every list. Contract 3. */
export const PageQuery = {
  cursor: Schema.optionalKey(
    Schema.String.annotate({ description: "`next_cursor` of the page before" })
  ),
  limit: Schema.optionalKey(
    Schema.FiniteFromString.pipe(
      Schema.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: pageSizeMax }))
    ).annotate({ description: `1 to ${pageSizeMax}, default ${pageSizeDefault}` })
  )
}

/** A page: newest first. Contract 3. */
export const pageOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ data: Schema.Array(item), next_cursor: Schema.NullOr(Schema.String) })

const encodeCursor = (key: string): string => Buffer.from(key).toString("base64url")

/** Where a page begins and how long it is. A cursor that is none of ours is a fault of the client. */
export const readPage = <
  Key extends Schema.ConstraintDecoder<unknown> & { readonly Encoded: string }
>(
  query: { readonly cursor?: string; readonly limit?: number },
  key: Key
) => {
  const limit = query.limit ?? pageSizeDefault
  if (query.cursor === undefined) return Effect.succeed({ before: Option.none(), limit })
  const text = Buffer.from(query.cursor, "base64url").toString("utf8")
  return Option.match(Schema.decodeOption(key)(text), {
    onNone: () =>
      Effect.fail(
        invalid([{ pointer: "#/query/cursor", detail: "Expected next_cursor of the page before" }])
      ),
    onSome: (before) => Effect.succeed({ before: Option.some(before), limit })
  })
}

/** Cuts what was read with one row more than asked for into a page. */
export const toPage = <Row, Item>(
  rows: ReadonlyArray<Row>,
  limit: number,
  keyOf: (row: Row) => string,
  show: (row: Row) => Item
): { readonly data: ReadonlyArray<Item>; readonly next_cursor: string | null } => {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.map(show),
    next_cursor: rows.length > limit && last !== undefined ? encodeCursor(keyOf(last)) : null
  }
}
