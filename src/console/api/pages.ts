import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { entryOf } from "../router/location.ts"
import { useBack } from "./online.ts"
import { searchOn } from "./searchOn.ts"
import type { Page } from "./searchOn.ts"

export type { Page }

/** A list that is read from the API page by page, newest first. */
export interface Pages<T> {
  readonly rows: ReadonlyArray<T>
  readonly hasMore: boolean
  readonly isLoading: boolean
  readonly cause: unknown
  /** The number of rows that were added while another page was open. The next `reload` includes them. */
  readonly missed: number
  readonly loadMore: () => void
  /** Starts again with the first page. */
  readonly reload: () => void
  /** Replaces a row by a newer state without moving it. `false`: the row is not in the list. */
  readonly update: (row: T) => boolean
}

interface State<T> {
  readonly key: string
  readonly rows: ReadonlyArray<T>
  readonly next: string | null
  readonly isLoading: boolean
  readonly cause: unknown
  readonly missed: number
}

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

/** The pages of one search, whose filters are the key. A filtered page may be short although another one follows. */
export const usePages = <T>(
  list: string,
  filters: string,
  load: (cursor: string | undefined) => Promise<Page<T>>,
  idOf: (row: T) => string
): Pages<T> => {
  const key = `${list} ${filters}`
  const empty = { key, rows: [], next: null, isLoading: true, cause: undefined, missed: 0 }
  // oxlint-disable-next-line typescript/consistent-type-assertions -- what a list left is of its type
  const kept = () => left.get(`${entryOf()} ${key}`) as State<T> | undefined
  const [stored, setState] = useState<State<T>>(() => kept() ?? empty)
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
            cause: undefined,
            missed: cursor === undefined ? 0 : before.missed
          })),
        (cause: unknown) => change((before) => ({ ...before, isLoading: false, cause }))
      )
    },
    [key]
  )

  /** Keeps the restored rows and replaces those that have a newer state. */
  const catchUp = useCallback(() => {
    const { round } = newest.current
    newest.current.load(undefined).then(
      ({ data }) => {
        if (newest.current.round !== round) return
        const byId = new Map(data.map((row) => [newest.current.idOf(row), row]))
        setState((before) => {
          const known = new Set(before.rows.map((row) => newest.current.idOf(row)))
          return {
            ...before,
            rows: before.rows.map((row) => byId.get(newest.current.idOf(row)) ?? row),
            missed: [...byId.keys()].filter((id) => !known.has(id)).length
          }
        })
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
    missed: state.missed,
    loadMore: useCallback(() => read(newest.current.state.next ?? undefined), [read]),
    reload: useCallback(() => read(undefined), [read]),
    update
  }
}
