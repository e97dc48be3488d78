import type { Page } from "./schema.ts"

/** The part of a query that asks for a page. */
export interface PageQuery {
  readonly limit: number
  readonly cursor?: string
}

export const pageAfter = (limit: number, cursor: string | undefined): PageQuery => ({
  limit,
  ...(cursor === undefined ? {} : { cursor })
})

const searchMillis = 1000

/** Continues an empty page for up to a second, because each filtered page scans only a bounded number of rows. */
export const searchOn = async <T>(
  load: (cursor: string | undefined) => Promise<Page<T>>,
  cursor: string | undefined,
  until = performance.now() + searchMillis
): Promise<Page<T>> => {
  const page = await load(cursor)
  return page.data.length === 0 && page.next_cursor !== null && performance.now() < until
    ? searchOn(load, page.next_cursor, until)
    : page
}
