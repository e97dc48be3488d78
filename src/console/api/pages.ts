import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { entryOf, viewedUser } from "../router/location.ts"
import { useBack } from "./online.ts"
import type { Page } from "./schema.ts"
import { pageAfter, searchOn } from "./searchOn.ts"
import type { PageQuery } from "./searchOn.ts"

interface Row {
  readonly id: string
  readonly created_at?: string
}

/** A list that is read from the API page by page, newest first. */
export interface Pages<T> {
  readonly rows: ReadonlyArray<T>
  readonly hasMore: boolean
  readonly isLoading: boolean
  readonly cause: unknown
  /** The number of rows that were added since. The next `reload` includes them. */
  readonly missed: number
  readonly loadMore: () => void
  /** Starts again with the first page. */
  readonly reload: () => void
  /** Reloads unless the user has read on, because that would remove the further rows. */
  readonly refresh: () => void
  /** Replaces a row by a newer state without moving it, or counts a new row that matches the filters. */
  readonly take: (row: T, isMatch: boolean) => void
}

interface State<T> {
  readonly key: string
  readonly rows: ReadonlyArray<T>
  readonly next: string | null
  readonly isLoading: boolean
  readonly cause: unknown
  readonly missed: ReadonlySet<string>
}

const none: ReadonlySet<string> = new Set()

/** The lists of pages in the browser's history, by history entry, so that going back restores their rows. */
const left = new Map<string, State<unknown>>()
const leftMax = 20

const leave = (name: string, state: State<unknown>): void => {
  left.delete(name)
  left.set(name, state)
  for (const oldest of [...left.keys()].slice(0, Math.max(0, left.size - leftMax))) {
    left.delete(oldest)
  }
}

/** Forgets what other pages have read, as when another user signs in. */
export const forgetPages = (): void => left.clear()

/** The number of rows that a list begins with. */
export const pageSize = 50

/** The pages of one search, of which the filters are the key. A filtered page may be short although another follows. */
export const usePages = <T extends Row>(
  list: string,
  filters: unknown,
  load: (query: PageQuery) => Promise<Page<T>>,
  size = pageSize
): Pages<T> => {
  const key = `${list} ${JSON.stringify([viewedUser(), filters])}`
  const empty = { key, rows: [], next: null, isLoading: true, cause: undefined, missed: none }
  // oxlint-disable-next-line typescript/consistent-type-assertions -- what a list left is of its type
  const kept = () => left.get(`${entryOf()} ${key}`) as State<T> | undefined
  const [stored, setState] = useState<State<T>>(() => kept() ?? empty)
  const state = stored.key === key ? stored : empty
  const newest = useRef({ load, state, round: 0 })
  Object.assign(newest.current, { load, state })

  const read = useCallback(
    (cursor: string | undefined) => {
      newest.current.round += 1
      const { round } = newest.current
      const change = (next: (before: State<T>) => State<T>) => {
        if (newest.current.round === round) setState((it) => next(it.key === key ? it : empty))
      }
      change((before) => ({ ...before, isLoading: true, cause: undefined }))
      const loadAfter = (at: string | undefined) => newest.current.load(pageAfter(size, at))
      searchOn(loadAfter, cursor).then(
        (page) =>
          change((before) => ({
            key,
            rows: cursor === undefined ? page.data : [...before.rows, ...page.data],
            next: page.next_cursor,
            isLoading: false,
            cause: undefined,
            missed: cursor === undefined ? none : before.missed
          })),
        (cause: unknown) => change((before) => ({ ...before, isLoading: false, cause }))
      )
    },
    [key]
  )

  /** Keeps the restored rows and replaces those that have a newer state. */
  const catchUp = useCallback(() => {
    const { round } = newest.current
    newest.current.load(pageAfter(size, undefined)).then(
      ({ data }) => {
        if (newest.current.round !== round) return
        const byId = new Map(data.map((row) => [row.id, row]))
        setState((before) => ({
          ...before,
          rows: before.rows.map((row) => byId.get(row.id) ?? row),
          missed: new Set(byId.keys()).difference(new Set(before.rows.map(({ id }) => id)))
        }))
      },
      () => undefined
    )
  }, [key])

  useEffect(() => {
    const name = `${entryOf()} ${key}`
    if (left.has(name)) catchUp()
    else read(undefined)
    return () => {
      newest.current.round += 1
      const { state: now } = newest.current
      if (now.key === key && !now.isLoading && now.cause === undefined) leave(name, now)
    }
  }, [read])
  useBack(() => {
    const { cause, next } = newest.current.state
    if (cause !== undefined) read(next ?? undefined)
  })

  const reload = useCallback(() => read(undefined), [read])
  const refresh = useCallback(() => {
    const { isLoading, rows } = newest.current.state
    if (!isLoading && rows.length <= size) reload()
  }, [reload])
  const take = useCallback((row: T, isMatch: boolean) => {
    const { isLoading, rows } = newest.current.state
    if (rows.some(({ id }) => id === row.id)) {
      setState((it) => ({ ...it, rows: it.rows.map((old) => (old.id === row.id ? row : old)) }))
    } else if (isMatch && !isLoading && (row.created_at ?? "") > (rows[0]?.created_at ?? "")) {
      setState((it) => ({ ...it, missed: new Set([...it.missed, row.id]) }))
    }
  }, [])
  return {
    rows: state.rows,
    hasMore: state.next !== null,
    isLoading: state.isLoading,
    cause: state.cause,
    missed: state.missed.size,
    loadMore: useCallback(() => read(newest.current.state.next ?? undefined), [read]),
    reload,
    refresh,
    take
  }
}
