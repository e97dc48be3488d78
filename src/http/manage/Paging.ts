import { Effect, Option } from "effect"
import { encodeCursor, keyOfCursor } from "../../contract/Lists.ts"
import type { KeySchema } from "../../contract/Lists.ts"
import { pageSizeDefault } from "../../domain/limits/Limits.ts"
import { nextTurn } from "../../domain/shares/Slices.ts"

/** The start and the length of the requested page. */
export const readPage = <Key extends KeySchema>(
  query: { readonly cursor?: string; readonly limit?: number },
  key: Key
) => ({
  before: Option.flatMap(Option.fromUndefinedOr(query.cursor), (it) => keyOfCursor(it, key)),
  limit: query.limit ?? pageSizeDefault
})

/** From this many rows on, showing and encoding a page takes a noticeable part of an event-loop turn. */
const heavyPageRowsMin = 25

/**
 * Builds a page from rows that were read with a limit one higher, which shows whether there are more. `end`: where a
 * scan stopped that found fewer rows. A long page is treated as heavy work, and its response is encoded in the same
 * turn.
 */
export const toPage = <Row, Item>(
  rows: ReadonlyArray<Row>,
  limit: number,
  keyOf: (row: Row) => string,
  show: (row: Row) => Item,
  end: string | null = null
): Effect.Effect<Page<Item>> => {
  const page = Effect.sync(() => {
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    return {
      data: shown.map(show),
      next_cursor:
        rows.length > limit && last !== undefined
          ? encodeCursor(keyOf(last))
          : Option.getOrNull(Option.map(Option.fromNullOr(end), encodeCursor))
    }
  })
  return rows.length < heavyPageRowsMin ? page : Effect.andThen(nextTurn, page)
}

interface Page<Item> {
  readonly data: ReadonlyArray<Item>
  readonly next_cursor: string | null
}
