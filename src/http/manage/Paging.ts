import { Option } from "effect"
import { encodeCursor, keyOfCursor } from "../../contract/Lists.ts"
import type { KeySchema } from "../../contract/Lists.ts"
import { pageSizeDefault } from "../../domain/Limits.ts"

/** The start and the length of a page. */
export const readPage = <Key extends KeySchema>(
  query: { readonly cursor?: string; readonly limit?: number },
  key: Key
) => ({
  before: Option.flatMap(Option.fromUndefinedOr(query.cursor), (it) => keyOfCursor(it, key)),
  limit: query.limit ?? pageSizeDefault
})

/**
 * Makes a page of rows that were read with a limit one higher, which shows whether there are more. `end`:
 * where a scan has ended that found less.
 */
export const toPage = <Row, Item>(
  rows: ReadonlyArray<Row>,
  limit: number,
  keyOf: (row: Row) => string,
  show: (row: Row) => Item,
  end: string | null = null
): { readonly data: ReadonlyArray<Item>; readonly next_cursor: string | null } => {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.map(show),
    next_cursor:
      rows.length > limit && last !== undefined
        ? encodeCursor(keyOf(last))
        : Option.getOrNull(Option.map(Option.fromNullOr(end), encodeCursor))
  }
}
