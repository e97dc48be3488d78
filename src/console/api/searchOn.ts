export interface Page<T> {
  readonly data: ReadonlyArray<T>
  readonly next_cursor: string | null
}

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
