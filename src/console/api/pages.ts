import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { searchOn } from "./searchOn.ts"
import type { Page } from "./searchOn.ts"

export type { Page }

/** A list of the API that is read page by page, newest first. */
export interface Pages<T> {
  readonly rows: ReadonlyArray<T>
  readonly hasMore: boolean
  readonly isLoading: boolean
  readonly cause: unknown
  readonly loadMore: () => void
  /** Begins again with the first page. */
  readonly reload: () => void
  /** Puts a newer state of a row in its place; rows keep their places. `false`: it is not among them. */
  readonly update: (row: T) => boolean
}

interface State<T> {
  readonly key: string
  readonly rows: ReadonlyArray<T>
  readonly next: string | null
  readonly isLoading: boolean
  readonly cause: unknown
}

/** Pages of one search: its filters are the key. A filtered page may be short, and another one follows. */
export const usePages = <T>(
  key: string,
  load: (cursor: string | undefined) => Promise<Page<T>>,
  idOf: (row: T) => string
): Pages<T> => {
  const empty = { key, rows: [], next: null, isLoading: true, cause: undefined }
  const [stored, setState] = useState<State<T>>(empty)
  const state = stored.key === key ? stored : empty
  const newest = useRef({ load, idOf, state, round: 0 })
  Object.assign(newest.current, { load, idOf, state })

  const read = useCallback(
    (cursor: string | undefined) => {
      newest.current.round += 1
      const { round } = newest.current
      const change = (next: (before: State<T>) => State<T>) => {
        if (newest.current.round === round) setState((it) => next(it.key === key ? it : empty))
      }
      change((before) => ({ ...before, isLoading: true, cause: undefined }))
      searchOn(newest.current.load, cursor).then(
        (page) =>
          change((before) => ({
            key,
            rows: cursor === undefined ? page.data : [...before.rows, ...page.data],
            next: page.next_cursor,
            isLoading: false,
            cause: undefined
          })),
        (cause: unknown) => change((before) => ({ ...before, isLoading: false, cause }))
      )
    },
    [key]
  )
  useEffect(() => {
    read(undefined)
    return () => {
      newest.current.round += 1
    }
  }, [read])

  const update = useCallback((row: T): boolean => {
    const { idOf: id, state: now } = newest.current
    if (!now.rows.some((it) => id(it) === id(row))) return false
    setState((it) => ({ ...it, rows: it.rows.map((old) => (id(old) === id(row) ? row : old)) }))
    return true
  }, [])
  return {
    rows: state.rows,
    hasMore: state.next !== null,
    isLoading: state.isLoading,
    cause: state.cause,
    loadMore: useCallback(() => read(newest.current.state.next ?? undefined), [read]),
    reload: useCallback(() => read(undefined), [read]),
    update
  }
}
